"""What NvmlDriver makes of what the driver says: values, and None for what is not supported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slurm_hooks.health.driver.model import (
    EccCounts,
    Fabric,
    GpuMemory,
    NvLinkErrors,
    NvLinks,
    PcieErrors,
    PcieLink,
    RemappedRows,
    RetiredPages,
    SramErrors,
    ThrottleTimes,
    all_gpus,
)
from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.health.driver.protocol import Driver
from slurm_hooks.sandbox.gpu.state import DriverState, healthy_gpu
from tests.unit.health.node_roots import NodeRoot

Question = Callable[[Any, Any], object]

VALUES: list[tuple[Question, dict[str, Any], object]] = [
    (NvmlDriver.recovery_action, {"recovery_action": 2}, 2),
    (
        NvmlDriver.remapped_rows,
        {"remapped_rows": RemappedRows(3, 1, True, False)},
        RemappedRows(3, 1, True, False),
    ),
    (
        NvmlDriver.remapped_rows,
        {"remapped_rows": RemappedRows(0, 512, False, True)},
        RemappedRows(0, 512, False, True),
    ),
    (NvmlDriver.ecc_counts, {"ecc": EccCounts(17_000, 2)}, EccCounts(17_000, 2)),
    (NvmlDriver.ecc_counts, {"ecc": EccCounts(2**63, 0)}, EccCounts(2**63, 0)),
    (NvmlDriver.sram_errors, {"sram": SramErrors(1, 2, 3, True)}, SramErrors(1, 2, 3, True)),
    (NvmlDriver.retired_pages, {"retired_pages": RetiredPages(12, True)}, RetiredPages(12, True)),
    (NvmlDriver.retired_pages, {"retired_pages": RetiredPages(0, False)}, RetiredPages(0, False)),
    (
        NvmlDriver.nvlinks,
        {"nvlinks": (True, False, True)},
        NvLinks((True, False, True)),
    ),
    (
        NvmlDriver.nvlink_errors,
        {"nvlink_errors": NvLinkErrors(4, 3e-6)},
        NvLinkErrors(4, 3e-6),
    ),
    (
        NvmlDriver.fabric,
        {"fabric": Fabric(2, 999, 0x51A9, 2)},
        Fabric(2, 999, 0x51A9, 2),
    ),
    (NvmlDriver.pcie_link, {"pcie": PcieLink(8, 16, 4, 5)}, PcieLink(8, 16, 4, 5)),
    (NvmlDriver.pcie_errors, {"pcie_errors": PcieErrors(1, 2, 3, 4)}, PcieErrors(1, 2, 3, 4)),
    (
        NvmlDriver.pcie_errors,
        {"pcie_errors": PcieErrors(1, None, None, None)},
        PcieErrors(1, None, None, None),
    ),
    (
        NvmlDriver.throttle_times,
        {"throttle_times": ThrottleTimes(10**12, 2, 3, 4)},
        ThrottleTimes(10**12, 2, 3, 4),
    ),
    (NvmlDriver.process_ids, {"processes": (4242, 77, 77)}, (77, 4242)),
    (NvmlDriver.memory, {"memory": GpuMemory(80, 5, 1)}, GpuMemory(80, 5, 1)),
    (NvmlDriver.is_persistence_on, {"is_persistence_on": False}, False),
    (NvmlDriver.is_in_multi_instance_mode, {"is_in_multi_instance_mode": True}, True),
]


@pytest.mark.parametrize(("question", "changes", "answer"), VALUES)
def test_value_of_the_driver_is_the_answer(
    node: NodeRoot,
    driver: NvmlDriver,
    question: Question,
    changes: dict[str, Any],
    answer: object,
) -> None:
    gpu = driver.gpu(3)
    node.change_gpu(3, **changes)

    assert question(driver, gpu) == answer
    assert question(driver, driver.gpu(4)) != answer, "a neighbour must not have it"


UNSUPPORTED: list[tuple[Question, dict[str, Any]]] = [
    (NvmlDriver.recovery_action, {"recovery_action": None}),
    (NvmlDriver.remapped_rows, {"remapped_rows": None}),
    (NvmlDriver.ecc_counts, {"ecc": None}),
    (NvmlDriver.sram_errors, {"sram": None}),
    (NvmlDriver.retired_pages, {"retired_pages": None}),
    (NvmlDriver.nvlinks, {"nvlinks": ()}),
    (NvmlDriver.nvlinks, {"nvlinks": (), "raw": {"field.91": None}}),
    (NvmlDriver.nvlink_errors, {"nvlink_errors": NvLinkErrors(None, None)}),
    (NvmlDriver.nvlink_errors, {"nvlinks": ()}),
    (NvmlDriver.fabric, {"fabric": None}),
    (NvmlDriver.fabric, {"fabric": Fabric(0, 0, 0, 0)}),
    (NvmlDriver.pcie_link, {"pcie": None}),
    (NvmlDriver.pcie_errors, {"pcie_errors": PcieErrors(None, None, None, None)}),
    (NvmlDriver.throttle_times, {"throttle_times": ThrottleTimes(None, None, None, None)}),
    (
        NvmlDriver.process_ids,
        {
            "raw": {
                "processes.compute": None,
                "processes.mps": None,
                "processes.graphics": None,
            }
        },
    ),
    (NvmlDriver.memory, {"memory": None}),
    (NvmlDriver.is_persistence_on, {"is_persistence_on": None}),
    (NvmlDriver.validate_inforom, {"is_inforom_good": None}),
    (NvmlDriver.is_in_multi_instance_mode, {"is_in_multi_instance_mode": None}),
]


@pytest.mark.parametrize(("question", "changes"), UNSUPPORTED)
def test_what_a_gpu_does_not_support_is_none(
    node: NodeRoot, driver: NvmlDriver, question: Question, changes: dict[str, Any]
) -> None:
    gpu = driver.gpu(0)
    node.change_gpu(0, **changes)

    assert question(driver, gpu) is None


def test_driver_names_its_version_and_counts_its_gpus(driver: Driver) -> None:
    assert driver.version() == "570.133.20"
    assert driver.count() == 8


def test_pci_address_has_the_form_of_sysfs(bare_node: NodeRoot) -> None:
    bare_node.with_driver(DriverState((healthy_gpu(0),)))
    bare_node.change_gpu(0, pci_address="0001:9b:1f")
    driver = bare_node.driver()
    driver.open()

    assert driver.gpu(0).pci_address == "0001:9b:1f"
    driver.close()


def test_minor_numbers_may_differ_from_nvml_indexes(bare_node: NodeRoot) -> None:
    bare_node.with_driver(DriverState(tuple(healthy_gpu(minor) for minor in (3, 0, 2, 1))))
    driver = bare_node.driver()
    driver.open()

    gpus = all_gpus(driver)

    assert [(gpu.index, gpu.minor) for gpu in gpus] == [(0, 3), (1, 0), (2, 2), (3, 1)]
    assert [gpu.pci_address for gpu in gpus][:2] == ["0000:07:00", "0000:04:00"]
    driver.close()


def test_gpu_without_serial_number_is_still_a_gpu(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(0, serial=None)

    assert driver.gpu(0).serial == ""
    assert driver.gpu(0).uuid == node.gpu(0).uuid


def test_count_may_be_lower_than_what_is_on_the_bus(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_driver(counted=7)

    assert driver.count() == 7


def test_persistence_mode_stays_switched_on(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(6, is_persistence_on=False)
    gpu = driver.gpu(6)
    assert driver.is_persistence_on(gpu) is False

    driver.set_persistence_on(gpu)

    assert driver.is_persistence_on(gpu) is True
    assert driver.remapped_rows(gpu) == RemappedRows(0, 0, False, False)


@pytest.mark.parametrize(
    ("reset", "drain", "action"),
    [
        ("uint:1", "uint:0", 1),
        ("uint:0", "uint:1", 4),
        ("uint:1", "uint:1", 1),
        ("uint:0", "uint:0", 0),
        (None, "uint:1", 4),
    ],
)
def test_older_drivers_say_by_two_fields_what_recovers_a_gpu(
    node: NodeRoot, driver: NvmlDriver, reset: str | None, drain: str, action: int
) -> None:
    node.change_gpu(0, recovery_action=None, raw={"field.226": reset, "field.227": drain})

    assert driver.recovery_action(driver.gpu(0)) == action


def test_field_that_the_driver_does_not_know_yet_is_not_supported(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(0, raw={"field.230": "error:2"})

    assert driver.recovery_action(driver.gpu(0)) is None


def test_older_fabric_structure_is_used_where_the_newest_is_refused(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(0, raw={"fabric_version": "2"})

    assert driver.fabric(driver.gpu(0)) == Fabric(3, 0, 0x51AA, 0)


@pytest.mark.parametrize("refusal", [2, 13, 25])
def test_oldest_fabric_call_is_used_where_the_newer_is_refused(
    node: NodeRoot, driver: NvmlDriver, refusal: int
) -> None:
    node.change_gpu(0, errors={"nvmlDeviceGetGpuFabricInfoV": refusal})

    assert driver.fabric(driver.gpu(0)) == Fabric(3, 0, 0, 0)


def test_replays_come_from_the_older_call_where_there_is_no_field(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(0, raw={"field.94": None, "pcie.replays": "12"})

    assert driver.pcie_errors(driver.gpu(0)) == PcieErrors(12, 0, 0, 0)


def test_throttle_times_come_from_the_older_call_where_there_are_no_fields(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(
        0,
        throttle_times=ThrottleTimes(None, None, None, None),
        raw={"violation.0": "5", "violation.1": "6"},
    )

    assert driver.throttle_times(driver.gpu(0)) == ThrottleTimes(5, 6, None, None)


def test_retired_pages_of_both_causes_are_counted(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(
        0,
        errors={"nvmlDeviceGetRetiredPages_v2": 13},
        raw={"retired_pages.0": "4", "retired_pages.1": "7", "retired_pages.pending": "0"},
    )

    assert driver.retired_pages(driver.gpu(0)) == RetiredPages(11, is_pending=False)


def test_processes_of_all_kinds_are_listed_once(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(0, processes=(9, 5), raw={"processes.mps": "5,7", "processes.graphics": "1"})

    assert driver.process_ids(driver.gpu(0)) == (1, 5, 7, 9)


def test_links_are_found_where_the_driver_does_not_count_them(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(0, nvlinks=(True, False), raw={"field.91": None})

    assert driver.nvlinks(driver.gpu(0)) == NvLinks((True, False))


def test_worst_link_gives_the_bit_error_rate(node: NodeRoot, driver: NvmlDriver) -> None:
    quiet, bad = 15 << 8 | 255, 2 << 8 | 5
    node.change_gpu(
        0,
        raw={
            "field.214.0": "ulonglong:1",
            "field.214.17": "ulonglong:2",
            "field.220.0": f"ulonglong:{quiet}",
            "field.220.9": f"ulonglong:{bad}",
        },
    )

    assert driver.nvlink_errors(driver.gpu(0)) == NvLinkErrors(3, 2e-5)


def test_memory_is_unknown_where_the_driver_counts_its_own_as_used(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.change_gpu(0, errors={"nvmlDeviceGetMemoryInfo_v2": 13})

    assert driver.memory(driver.gpu(0)) is None


def test_what_instances_hide_is_none(node: NodeRoot, driver: NvmlDriver) -> None:
    node.change_gpu(0, is_in_multi_instance_mode=True, errors={"nvmlDeviceGetTotalEccErrors": 4})

    assert driver.ecc_counts(driver.gpu(0)) is None


def test_two_nodes_after_each_other_answer_for_themselves(
    node: NodeRoot, driver_library: Any, tmp_path: Any
) -> None:
    other = NodeRoot(tmp_path / "other", driver_library).with_gpus(2)
    counts = []
    for each in (node, other, node):
        driver = each.driver()
        driver.open()
        counts.append(driver.count())
        driver.close()

    assert counts == [8, 2, 8]
