"""Every failure of the driver is a DriverError that says what failed; none passes for a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from slurm_hooks.health.driver.model import DriverError, DriverFault
from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME
from slurm_hooks.sandbox.gpu.state import ATTACH, STATE_NAME
from tests.unit.health.node_roots import NodeRoot

Question = Callable[[Any, Any], object]

CALLS: list[tuple[Question, str]] = [
    (NvmlDriver.recovery_action, "nvmlDeviceGetFieldValues"),
    (NvmlDriver.remapped_rows, "nvmlDeviceGetRemappedRows"),
    (NvmlDriver.ecc_counts, "nvmlDeviceGetTotalEccErrors"),
    (NvmlDriver.sram_errors, "nvmlDeviceGetSramEccErrorStatus"),
    (NvmlDriver.retired_pages, "nvmlDeviceGetRetiredPages_v2"),
    (NvmlDriver.retired_pages, "nvmlDeviceGetRetiredPagesPendingStatus"),
    (NvmlDriver.nvlinks, "nvmlDeviceGetNvLinkState"),
    (NvmlDriver.nvlink_errors, "nvmlDeviceGetFieldValues"),
    (NvmlDriver.fabric, "nvmlDeviceGetGpuFabricInfoV"),
    (NvmlDriver.pcie_link, "nvmlDeviceGetCurrPcieLinkWidth"),
    (NvmlDriver.pcie_link, "nvmlDeviceGetMaxPcieLinkGeneration"),
    (NvmlDriver.pcie_errors, "nvmlDeviceGetFieldValues"),
    (NvmlDriver.throttle_times, "nvmlDeviceGetFieldValues"),
    (NvmlDriver.process_ids, "nvmlDeviceGetComputeRunningProcesses_v3"),
    (NvmlDriver.process_ids, "nvmlDeviceGetMPSComputeRunningProcesses_v3"),
    (NvmlDriver.process_ids, "nvmlDeviceGetGraphicsRunningProcesses_v3"),
    (NvmlDriver.memory, "nvmlDeviceGetMemoryInfo_v2"),
    (NvmlDriver.is_persistence_on, "nvmlDeviceGetPersistenceMode"),
    (NvmlDriver.set_persistence_on, "nvmlDeviceSetPersistenceMode"),
    (NvmlDriver.validate_inforom, "nvmlDeviceValidateInforom"),
    (NvmlDriver.is_in_multi_instance_mode, "nvmlDeviceGetMigMode"),
]

FAILURES = [
    fault
    for fault in DriverFault
    if fault not in (DriverFault.OTHER, DriverFault.NOT_SUPPORTED, DriverFault.FUNCTION_NOT_FOUND)
]


def failure(ask: Callable[[], object]) -> DriverError:
    with pytest.raises(DriverError) as raised:
        ask()
    return raised.value


@pytest.mark.parametrize("fault", FAILURES)
@pytest.mark.parametrize(("question", "call"), CALLS)
def test_failing_call_is_an_error_with_its_number(
    node: NodeRoot, driver: NvmlDriver, question: Question, call: str, fault: DriverFault
) -> None:
    gpu = driver.gpu(2)
    node.change_gpu(2, errors={call: int(fault)})

    error = failure(lambda: question(driver, gpu))

    assert (error.fault, error.number) == (fault, int(fault))
    assert error.call.partition("(")[0] in call


@pytest.mark.parametrize("fault", FAILURES)
@pytest.mark.parametrize("call", ["nvmlInitWithFlags", ATTACH])
def test_driver_that_does_not_start_says_why(node: NodeRoot, call: str, fault: DriverFault) -> None:
    node.change_driver(errors={call: int(fault)})

    assert failure(node.driver().open).fault is fault


@pytest.mark.parametrize("number", [1, 4, 6, 17, 19, 20, 29, 4711])
def test_number_that_means_nothing_to_us_is_kept(
    node: NodeRoot, driver: NvmlDriver, number: int
) -> None:
    gpu = driver.gpu(0)
    node.change_gpu(0, errors={"nvmlDeviceGetRemappedRows": number})

    error = failure(lambda: driver.remapped_rows(gpu))

    assert (error.fault, error.number) == (DriverFault.OTHER, number)


@pytest.mark.parametrize("number", [3, 13])
def test_identity_that_is_not_supported_is_a_failure_where_nothing_works_without_it(
    node: NodeRoot, driver: NvmlDriver, number: int
) -> None:
    node.change_gpu(0, errors={"nvmlDeviceGetMinorNumber": number})

    assert failure(lambda: driver.gpu(0)).number == number


def test_one_lost_gpu_among_eight_is_lost_and_the_others_answer(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(5, is_lost=True)

    assert driver.count() == 8
    assert failure(lambda: driver.gpu(5)).fault is DriverFault.GPU_IS_LOST
    assert [driver.gpu(index).minor for index in (0, 4, 6, 7)] == [0, 4, 6, 7]


@pytest.mark.parametrize("question", {question: None for question, _ in CALLS})
def test_gpu_that_is_lost_after_it_was_attached_to_fails_every_call(
    node: NodeRoot, driver: NvmlDriver, question: Question
) -> None:
    gpu = driver.gpu(5)
    node.change_gpu(5, is_lost=True)

    assert failure(lambda: question(driver, gpu)).fault is DriverFault.GPU_IS_LOST


def test_gpu_beyond_what_the_driver_counts_has_no_handle(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_driver(counted=7)

    assert failure(lambda: driver.gpu(7)).fault is DriverFault.OTHER


def test_unloaded_driver_does_not_start(node: NodeRoot) -> None:
    node.change_driver(is_loaded=False)

    assert failure(node.driver().open).fault is DriverFault.DRIVER_NOT_LOADED


def test_driver_that_is_unloaded_later_fails_calls(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_driver(is_loaded=False)

    assert failure(driver.count).fault is DriverFault.DRIVER_NOT_LOADED
    assert failure(driver.version).fault is DriverFault.DRIVER_NOT_LOADED


def test_missing_library_is_an_error_and_no_node_without_gpus(bare_node: NodeRoot) -> None:
    error = failure(bare_node.driver().open)

    assert error.fault is DriverFault.LIBRARY_NOT_FOUND
    assert LIBRARY_NAME in error.call


def test_library_that_is_no_library_is_not_found(bare_node: NodeRoot) -> None:
    bare_node.write(f"usr/lib/{LIBRARY_NAME}", "not an ELF file")

    assert failure(bare_node.driver().open).fault is DriverFault.LIBRARY_NOT_FOUND


def test_driver_without_state_is_not_loaded(node: NodeRoot) -> None:
    node.path("usr/lib", STATE_NAME).unlink()

    assert failure(node.driver().open).fault is DriverFault.DRIVER_NOT_LOADED


@pytest.mark.parametrize(
    ("question", "raw"),
    [
        (NvmlDriver.remapped_rows, {"remapped_rows": "0,0,0"}),
        (NvmlDriver.remapped_rows, {"remapped_rows": "many,0,0,0"}),
        (NvmlDriver.remapped_rows, {"remapped_rows": "0,0,0,0\0 more"}),
        (NvmlDriver.ecc_counts, {"ecc.1": ""}),
        (NvmlDriver.recovery_action, {"field.230": "reset"}),
        (NvmlDriver.recovery_action, {"field.230": "double:nan"}),
        (NvmlDriver.process_ids, {"processes.compute": "1,,2"}),
    ],
)
def test_garbage_is_an_unknown_error(
    node: NodeRoot, driver: NvmlDriver, question: Question, raw: dict[str, str]
) -> None:
    node.change_gpu(0, raw=raw)

    assert failure(lambda: question(driver, driver.gpu(0))).fault is DriverFault.UNKNOWN


@pytest.mark.parametrize("name", ["uuid", "serial"])
def test_name_that_is_no_text_is_an_unknown_error(
    node: NodeRoot, driver: NvmlDriver, name: str
) -> None:
    node.change_gpu(0, raw={name: "\udcff\udcfe"})

    assert failure(lambda: driver.gpu(0)).fault is DriverFault.UNKNOWN


def test_single_field_that_fails_fails_the_question(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(0, raw={"field.180": "error:15"})

    error = failure(lambda: driver.pcie_errors(driver.gpu(0)))

    assert (error.fault, error.call) == (
        DriverFault.GPU_IS_LOST,
        "nvmlDeviceGetFieldValues(180)",
    )


def test_corrupted_inforom_is_said(node: NodeRoot, driver: NvmlDriver) -> None:
    gpu = driver.gpu(1)
    driver.validate_inforom(gpu)
    node.change_gpu(1, is_inforom_good=False)

    assert failure(lambda: driver.validate_inforom(gpu)).fault is DriverFault.CORRUPTED_INFOROM


def test_call_that_is_not_permitted_is_a_failure_without_instances(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(0, errors={"nvmlDeviceGetTotalEccErrors": 4})

    assert failure(lambda: driver.ecc_counts(driver.gpu(0))).number == 4


def test_driver_can_be_closed_at_any_time(node: NodeRoot) -> None:
    node.driver().close()
    driver = node.driver()
    driver.open()
    node.change_driver(errors={"nvmlShutdown": 999})

    driver.close()
    driver.close()


def test_driver_that_was_not_opened_supports_nothing(node: NodeRoot) -> None:
    assert failure(node.driver().count).fault is DriverFault.OTHER


def test_process_list_that_grows_while_it_is_read_is_read_again(
    node: NodeRoot, driver: NvmlDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.change_gpu(0, processes=(7,))
    name = "nvmlDeviceGetComputeRunningProcesses_v3"
    read, outgrown = getattr(pynvml, name), iter([True, True, False])

    def read_growing_list(handle: object) -> object:
        if next(outgrown):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        return read(handle)

    monkeypatch.setattr(pynvml, name, read_growing_list)

    assert driver.process_ids(driver.gpu(0)) == (7,)


def test_process_list_that_never_fits_is_a_failure(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(0, errors={"nvmlDeviceGetComputeRunningProcesses_v3": 7})

    assert failure(lambda: driver.process_ids(driver.gpu(0))).number == 7
