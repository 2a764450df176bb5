"""Single NVML calls through nvidia-ml-py, with every failure as one kind of error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from slurm_hooks.health.driver.call_signs import CallSigns
from slurm_hooks.health.driver.model import DriverError, DriverFault, Gpu

_UNINITIALIZED = 1
_INVALID_ARGUMENT = 2
_NO_PERMISSION = 4
_INSUFFICIENT_SIZE = 7
_UNSUPPORTED = frozenset({3, 13, 22, 25, 26})
"""Not supported; no such function; no ECC on a virtual GPU; no such version of it; deprecated."""

_LIST_READS = 3

_FAULTS = {int(fault): fault for fault in DriverFault if fault is not DriverFault.OTHER}
_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""By NVML's value type: the member of a field's value that holds it."""


class NvmlCalls:
    """Calls of one driver library: the system's own, or the one that lies at `library_path`.

    `signs` say at any moment which call that is.
    """

    def __init__(self, library_path: str, signs: CallSigns) -> None:
        self._library_path = library_path
        self._signs = signs
        self._handles: dict[int, Any] = {}
        self.nvml: Any = None

    def load(self) -> None:
        """Import the binding, and give it the library if that is not the system's.

        Raises DriverError (LIBRARY_NOT_FOUND), and ImportError without the binding: that is a
        fault of the installation, not of the driver.
        """
        import pynvml

        self.nvml = pynvml
        if not self._library_path:
            return
        import ctypes

        try:
            library = ctypes.CDLL(self._library_path, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            number = DriverFault.LIBRARY_NOT_FOUND
            raise DriverError(number, int(number), self._library_path) from None
        # The binding would ask the loader by name, which answers with whichever came first.
        pynvml.nvmlLib = library
        pynvml._nvmlGetFunctionPointer_cache.clear()

    def call(self, name: str, *arguments: Any) -> Any:
        """The answer of one call. Raises DriverError."""
        if self.nvml is None:
            raise _failure(_UNINITIALIZED, name)
        function = getattr(self.nvml, name, None)
        if function is None:
            raise _failure(int(DriverFault.FUNCTION_NOT_FOUND), name)
        self._signs.begin(name)
        try:
            return function(*arguments)
        except self.nvml.NVMLError as error:
            raise _failure(int(error.value), name) from None
        except self.nvml.NVMLLibraryMismatchError:
            raise _failure(int(DriverFault.FUNCTION_NOT_FOUND), name) from None
        except UnicodeDecodeError:
            raise _failure(int(DriverFault.UNKNOWN), name) from None
        finally:
            self._signs.end()

    def call_if_supported(self, name: str, *arguments: Any) -> Any | None:
        """The same, None where it is not supported."""
        try:
            return self.call(name, *arguments)
        except DriverError as error:
            if error.number in _UNSUPPORTED:
                return None
            raise

    def handle(self, index: int) -> Any:
        """NVML's handle of the GPU with this index, asked for once. Raises DriverError."""
        if index not in self._handles:
            self._handles[index] = self.call("nvmlDeviceGetHandleByIndex", index)
        return self._handles[index]

    def forget_handles(self) -> None:
        """Handles end with the library."""
        self._handles.clear()

    def ask(self, gpu: Gpu, name: str, *arguments: Any) -> Any | None:
        """What a call says about a GPU; None where that GPU, as it is, does not support it.

        One that is cut into instances refuses some calls as not permitted.
        """
        try:
            return self.call_if_supported(name, self.handle(gpu.index), *arguments)
        except DriverError as error:
            if error.number == _NO_PERMISSION and self._has_instances(gpu):
                return None
            raise

    def ask_if_known(self, gpu: Gpu, name: str, *arguments: Any) -> Any | None:
        """The same, None also where what the arguments name does not exist."""
        try:
            return self.ask(gpu, name, *arguments)
        except DriverError as error:
            if error.number == _INVALID_ARGUMENT:
                return None
            raise

    def ask_list(self, gpu: Gpu, name: str) -> Any | None:
        """The same for a list, which can outgrow its buffer while it is read: then once more."""
        for _ in range(_LIST_READS - 1):
            try:
                return self.ask(gpu, name)
            except DriverError as error:
                if error.number != _INSUFFICIENT_SIZE:
                    raise
        return self.ask(gpu, name)

    def ask_newest(self, gpu: Gpu, forms: Sequence[tuple[str, str]]) -> Any | None:
        """The structure that the driver fills in, of some forms, newest first.

        A form is a call and the name of its structure. A driver refuses forms that are newer than
        itself as of the wrong version or as wrong arguments.
        """
        from ctypes import byref

        for position, (name, structure) in enumerate(forms):
            form = getattr(self.nvml, structure, None)
            if form is None:
                continue
            filled = form()
            is_last = position + 1 == len(forms)
            ask = self.ask if is_last else self.ask_if_known
            if ask(gpu, name, byref(filled)) is not None:
                return filled
        return None

    def fields(self, gpu: Gpu, fields: Sequence[int | tuple[int, int]]) -> list[int | float | None]:
        """The values of fields, or of fields and scopes; None for what is not supported."""
        name = "nvmlDeviceGetFieldValues"
        values = self.ask(gpu, name, list(fields))
        if values is None:
            return [None] * len(fields)
        return [_field_value(value, f"{name}({value.fieldId})") for value in values]

    def _has_instances(self, gpu: Gpu) -> bool:
        modes = self.call_if_supported("nvmlDeviceGetMigMode", self.handle(gpu.index))
        return modes is not None and bool(modes[0])


def _field_value(value: Any, call: str) -> int | float | None:
    """One field. Drivers refuse fields that are newer than themselves as wrong arguments."""
    number = int(value.nvmlReturn)
    if number in _UNSUPPORTED or number == _INVALID_ARGUMENT:
        return None
    if number != 0:
        raise _failure(number, call)
    if not 0 <= value.valueType < len(_VALUE_MEMBERS):
        return None
    found: int | float = getattr(value.value, _VALUE_MEMBERS[value.valueType])
    if not math.isfinite(found):
        raise _failure(int(DriverFault.UNKNOWN), call)
    return found


def _failure(number: int, call: str) -> DriverError:
    return DriverError(_FAULTS.get(number, DriverFault.OTHER), number, call)
