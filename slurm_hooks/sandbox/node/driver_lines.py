"""The pretended driver's state file as lines that can be changed one by one."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

_KEY = re.compile(r"(?:driver|gpu\.\d+)(?:\.\w+)+")
_GPU_KEY = re.compile(r"gpu\.(\d+)\.(.+)")


class DriverLines:
    """Values by their keys, see state_file.h for both."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    @classmethod
    def read(cls, path: Path) -> DriverLines:
        """Raises FileNotFoundError where the node has no driver."""
        values: dict[str, str] = {}
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            key, separator, value = line.partition("=")
            if separator and not key.startswith("#"):
                values.setdefault(key, value)
        return cls(values)

    def get(self, key: str) -> str | None:
        """The value of a key; None without one."""
        return self._values.get(key)

    def set(self, key: str, value: str | None) -> None:
        """Change or add a value; None removes it. Raises ValueError for what is no line."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key such as gpu.0.lost or driver.loaded")
        if value is None:
            self._values.pop(key, None)
        elif "\n" in value:
            raise ValueError(f"the value of {key} has more than one line")
        else:
            self._values[key] = str(value)

    def index_of(self, minor: int) -> int | None:
        """The NVML index of the GPU with a minor number; None without one."""
        for key, value in self._values.items():
            match = _GPU_KEY.fullmatch(key)
            if match and match[2] == "minor" and value == str(minor):
                return int(match[1])
        return None

    def pci_address(self, index: int) -> str:
        """A GPU's address such as `0000:9b:00`."""
        domain, bus, device = (int(part) for part in self._values[f"gpu.{index}.pci"].split(","))
        return f"{domain:04x}:{bus:02x}:{device:02x}"

    def remove_gpu(self, index: int) -> None:
        """Take a GPU away; those behind it move up, as NVML counts what is there."""
        kept: dict[str, str] = {}
        for key, value in self._values.items():
            match = _GPU_KEY.fullmatch(key)
            if match is None or int(match[1]) < index:
                kept[key] = value
            elif int(match[1]) > index:
                kept[f"gpu.{int(match[1]) - 1}.{match[2]}"] = value
        kept["driver.count"] = str(int(kept["driver.count"]) - 1)
        self._values = kept

    def write(self, path: Path) -> None:
        """Put the lines in the place of the file, at once and whole."""
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{key}={value}\n" for key, value in self._values.items())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
