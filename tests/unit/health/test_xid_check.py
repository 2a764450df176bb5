"""The check `xid` on whole pretended nodes: kernel log, driver, job and policy together."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from subprocess import run

import pytest

from slurm_hooks.health.checks.xids import XidCheck
from slurm_hooks.health.cleared import cleared_time, write_cleared
from slurm_hooks.health.driver.model import EccCounts, SramErrors
from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy
from slurm_hooks.health.registry import all_checks
from slurm_hooks.health.xids.window import SEQUENCE_COUNTER
from tests.unit.health.node_roots import BOOT_ID, UPTIME_SECONDS, NodeRoot

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
PROLOG, EPILOG, BACKGROUND = Context.PROLOG, Context.EPILOG, Context.BACKGROUND
JOB = JobOnNode(7, gpus=(2, 3))
FELL_OFF, CONTAINED = "GPU has fallen off the bus.", "Contained: SM (0x1). RST: No, D-RST: No"


class PretendedLog:
    """Writes Xids into a node's kernel log, one a second, and knows where GPUs are."""

    def __init__(self, node: NodeRoot) -> None:
        self._node = node
        self._sequence = 0

    def says(self, xid: int, text: str = "x", gpu: int = 2, address: str = "") -> None:
        """The driver logs an Xid about a GPU by its index, or at another address."""
        self._sequence += 1
        place = address or self._node.gpu(gpu).pci_address
        stamp = self._sequence * 1_000_000
        self._node.kernel_log(
            f"4,{self._sequence},{stamp},-;NVRM: Xid (PCI:{place}): {xid}, {text}"
        )


@pytest.fixture
def log(node: NodeRoot) -> PretendedLog:
    return PretendedLog(node)


def evidence_of(
    node: NodeRoot,
    driver: NvmlDriver,
    context: Context,
    prolog: Evidence | None = None,
    policy: HealthPolicy | None = None,
    job: JobOnNode | None = JOB,
) -> Evidence:
    return Evidence(
        context,
        node.host(),
        policy or HealthPolicy(),
        ExpectedHardware(gpus=8),
        driver,
        NOW,
        job=job if context is not BACKGROUND else None,
        baseline=prolog.counters if prolog is not None else {},
        baseline_time=prolog.now if prolog is not None else None,
        cleared_time=cleared_time(node.host()),
    )


def found(evidence: Evidence) -> list[Finding]:
    return list(XidCheck().run(evidence))


def verdicts(evidence: Evidence) -> list[tuple[int | None, Verdict]]:
    return [(finding.xid, finding.verdict) for finding in found(evidence)]


def passed_prolog(node: NodeRoot, driver: NvmlDriver) -> Evidence:
    evidence = evidence_of(node, driver, PROLOG)
    assert found(evidence) == []
    return evidence


def test_check_is_registered_under_its_name() -> None:
    assert "xid" in [check.name for check in all_checks()]


@pytest.mark.parametrize("context", list(Context))
def test_log_without_xids_finds_nothing(
    node: NodeRoot, driver: NvmlDriver, context: Context
) -> None:
    assert found(evidence_of(node, driver, context)) == []


@pytest.mark.parametrize("context", list(Context))
def test_gpu_that_fell_off_the_bus_is_found(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog, context: Context
) -> None:
    log.says(79, FELL_OFF)
    [finding] = found(evidence_of(node, driver, context))
    assert (finding.check, finding.verdict, finding.xid) == ("xid", Verdict.REBOOT, 79)
    assert finding.gpu == node.gpu(2).minor
    assert node.gpu(2).pci_address in finding.detail


@pytest.mark.parametrize("context", list(Context))
def test_missing_log_is_unknown(node: NodeRoot, driver: NvmlDriver, context: Context) -> None:
    node.path("dev", "kmsg").unlink()
    [finding] = found(evidence_of(node, driver, context))
    assert finding.verdict is Verdict.UNKNOWN
    assert "No such file" in finding.detail


def test_garbage_in_place_of_the_log_is_unknown(node: NodeRoot, driver: NvmlDriver) -> None:
    node.path("dev", "kmsg").write_bytes(os.urandom(4096))
    [finding] = found(evidence_of(node, driver, PROLOG))
    assert finding.verdict is Verdict.UNKNOWN


def test_missing_log_of_a_node_without_gpus_is_nothing(bare_node: NodeRoot) -> None:
    bare_node.path("dev", "kmsg").unlink()
    evidence = evidence_of(bare_node, bare_node.driver(), PROLOG)
    evidence.expected = ExpectedHardware(gpus=0)
    evidence.job = None
    assert found(evidence) == []


def test_fault_before_the_job_is_not_the_jobs(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(94, CONTAINED)
    prolog = passed_prolog(node, driver)
    assert found(evidence_of(node, driver, EPILOG, prolog)) == []


def test_contained_memory_error_during_the_job_is_the_jobs(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(94, CONTAINED, gpu=3)
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.verdict, finding.of_job, finding.gpu) == (Verdict.REQUEUE, True, 3)
    passed_prolog(node, driver)


def test_same_line_before_and_during_the_job_is_the_jobs(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(94, CONTAINED)
    prolog = passed_prolog(node, driver)
    log.says(94, CONTAINED)
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.verdict, finding.of_job) == (Verdict.REQUEUE, True)
    assert "times" not in finding.detail


def test_fault_of_another_jobs_gpu_drains_without_blaming_this_job(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(48, gpu=5)
    log.says(94, CONTAINED, gpu=6)
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.xid, finding.verdict, finding.of_job) == (48, Verdict.RESET, False)


def test_application_xid_of_the_job_is_only_told(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(31, "pid=77, name=python, MMU Fault")
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.verdict, finding.of_job) == (Verdict.OK, False)
    assert "python" not in finding.detail, "a user chooses that name"


def test_gpu_that_is_lost_is_still_known_to_be_the_jobs(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(79, FELL_OFF, gpu=2)
    node.change_gpu(2, is_lost=True)
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.verdict, finding.of_job, finding.gpu) == (Verdict.REBOOT, True, 2)


def test_gpu_is_known_from_proc_where_neither_driver_nor_prolog_tells(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    address = node.gpu(2).pci_address
    node.write(f"proc/driver/nvidia/gpus/{address}.0/information", "Model: x\nDevice Minor: \t 2\n")
    log.says(79, FELL_OFF, gpu=2)
    node.change_gpu(2, is_lost=True)
    [finding] = found(evidence_of(node, driver, BACKGROUND))
    assert (finding.gpu, finding.verdict) == (2, Verdict.REBOOT)


def test_xid_at_an_unknown_address_is_judged_all_the_same(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(79, FELL_OFF, address="0000:ff:00")
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.verdict, finding.gpu, finding.of_job) == (Verdict.REBOOT, None, False)


def test_driver_that_is_dead_hides_no_xid(bare_node: NodeRoot) -> None:
    bare_node.kernel_log(f"4,9,1000000,-;NVRM: Xid (PCI:0000:9b:00): 79, {FELL_OFF}")
    [finding] = found(evidence_of(bare_node, bare_node.driver(), PROLOG))
    assert (finding.xid, finding.verdict) == (79, Verdict.REBOOT)


def test_missing_binding_hides_no_xid(
    node: NodeRoot, log: PretendedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.says(79, FELL_OFF)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    [finding] = found(evidence_of(node, node.driver(), PROLOG))
    assert (finding.xid, finding.verdict) == (79, Verdict.REBOOT)


def test_recovery_action_of_the_gpu_decides_instead_of_its_xid(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(48, gpu=2)
    log.says(48, gpu=3)
    node.change_gpu(2, recovery_action=1)
    first, second = found(evidence_of(node, driver, PROLOG))
    assert (first.verdict, second.verdict) == (Verdict.WARN, Verdict.RESET)


def test_xid_decides_where_the_recovery_action_is_not_supported(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    node.change_gpu(2, recovery_action=None)
    log.says(48)
    assert verdicts(evidence_of(node, driver, PROLOG)) == [(48, Verdict.RESET)]


@pytest.mark.parametrize(
    "policy",
    [
        HealthPolicy(disabled_checks=frozenset({"recovery_action"})),
        HealthPolicy(observed_checks=frozenset({"recovery_action"})),
    ],
)
def test_xid_decides_where_the_recovery_action_does_not_count(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog, policy: HealthPolicy
) -> None:
    node.change_gpu(2, recovery_action=1)
    log.says(48)
    assert verdicts(evidence_of(node, driver, PROLOG, policy=policy)) == [(48, Verdict.RESET)]


def test_changed_recovery_action_is_told_while_nvml_shows_it(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(154, "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")
    node.change_gpu(2, recovery_action=4)
    epilog = evidence_of(node, driver, EPILOG, prolog)
    assert verdicts(epilog) == [(154, Verdict.WARN)]
    node.change_gpu(2, recovery_action=0)
    assert verdicts(epilog) == [(154, Verdict.OK)]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.WARN),
        ({"ecc": EccCounts(1, 0)}, Verdict.REQUEUE),
        ({"ecc": EccCounts(0, 1)}, Verdict.REQUEUE),
        ({"sram": SramErrors(0, 1, 0, False)}, Verdict.REQUEUE),
        ({"ecc": None, "sram": None}, Verdict.REQUEUE),
    ],
)
def test_contained_error_after_peer_errors_is_excused_only_without_any_ecc_error(
    node: NodeRoot,
    driver: NvmlDriver,
    log: PretendedLog,
    changes: dict[str, object],
    verdict: Verdict,
) -> None:
    prolog = passed_prolog(node, driver)
    log.says(137, "RLW_RXPIPE interrupt hit on link 6 on GPU5: PRIV Error", gpu=5)
    log.says(94, CONTAINED, gpu=2)
    node.change_gpu(2, **changes)
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert (finding.xid, finding.verdict) == (94, verdict)
    assert finding.of_job is (verdict is Verdict.REQUEUE)


@pytest.mark.parametrize(
    ("xid", "override"), [(31, Verdict.REPLACE), (45, Verdict.RESET), (63, Verdict.MANUAL)]
)
def test_policy_makes_an_xid_graver(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog, xid: int, override: Verdict
) -> None:
    log.says(xid)
    policy = HealthPolicy(xids={xid: override})
    assert verdicts(evidence_of(node, driver, PROLOG)) == []
    assert verdicts(evidence_of(node, driver, PROLOG, policy=policy)) == [(xid, override)]


def test_policy_makes_an_xid_milder(node: NodeRoot, driver: NvmlDriver, log: PretendedLog) -> None:
    log.says(79, FELL_OFF)
    log.says(194)
    policy = HealthPolicy(xids={79: Verdict.OK, 94: Verdict.MANUAL})
    assert verdicts(evidence_of(node, driver, PROLOG, policy=policy)) == []


def test_cleared_xid_fails_no_prolog_and_a_new_one_does(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(48)
    assert verdicts(evidence_of(node, driver, PROLOG)) == [(48, Verdict.RESET)]
    write_cleared(node.host(), NOW, "alice")
    assert verdicts(evidence_of(node, driver, PROLOG)) == []
    assert verdicts(evidence_of(node, driver, BACKGROUND)) == []
    log.says(48)
    assert verdicts(evidence_of(node, driver, PROLOG)) == [(48, Verdict.RESET)]


def test_mark_of_an_earlier_boot_hides_no_xid_of_this_one(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(48)
    write_cleared(node.host(), NOW, "alice")
    node.write("proc/sys/kernel/random/boot_id", BOOT_ID.replace("1f6c", "2a2a"))
    assert verdicts(evidence_of(node, driver, PROLOG)) == [(48, Verdict.RESET)]


def test_epilog_goes_by_time_where_the_prolog_kept_no_place_in_the_log(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    booted = NOW - timedelta(seconds=UPTIME_SECONDS)
    log.says(94, CONTAINED, gpu=2)
    log.says(95, gpu=3)
    evidence = evidence_of(node, driver, EPILOG)
    evidence.baseline_time = booted + timedelta(seconds=1.5)
    assert verdicts(evidence) == [(95, Verdict.RESET)]


def test_lines_lost_during_the_job_are_told(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    node.path("dev", "kmsg").unlink()
    node.kernel_log("6,900,1000000,-;something else")
    [finding] = found(evidence_of(node, driver, EPILOG, prolog))
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.detail == "the kernel log has lost 899 lines of the job's time"


def test_storm_of_an_application_hides_no_fault(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    prolog = passed_prolog(node, driver)
    for number in range(3_000):
        log.says(31, f"pid={number}, name=python, MMU Fault", gpu=2)
    log.says(79, FELL_OFF, gpu=3)
    epilog = evidence_of(node, driver, EPILOG, prolog)
    assert verdicts(epilog) == [(31, Verdict.OK), (79, Verdict.REBOOT)]


def test_xid_of_the_probe_itself_is_not_held_against_the_gpu(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(119, f"pid={os.getpid()}, name=python3, Timeout after 45s of waiting")
    assert found(evidence_of(node, driver, PROLOG)) == []


def test_prolog_leaves_how_far_the_log_had_come(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    log.says(31)
    log.says(31)
    assert passed_prolog(node, driver).counters[SEQUENCE_COUNTER] == 2


def test_node_without_a_boot_id_leaves_no_place_in_the_log(
    node: NodeRoot, driver: NvmlDriver
) -> None:
    node.path("proc/sys/kernel/random/boot_id").unlink()
    assert SEQUENCE_COUNTER not in passed_prolog(node, driver).counters


def test_unreadable_uptime_hides_no_xid(
    node: NodeRoot, driver: NvmlDriver, log: PretendedLog
) -> None:
    node.write("proc/uptime", "garbage")
    log.says(48)
    evidence = evidence_of(node, driver, EPILOG)
    evidence.baseline_time = NOW
    assert verdicts(evidence) == [(48, Verdict.RESET)]


def test_healthy_run_loads_neither_parser_nor_table() -> None:
    script = (
        "import sys, slurm_hooks.health.checks.xids;"
        "print([name for name in sys.modules if name in ("
        "'slurm_hooks.health.xids.lines', 'slurm_hooks.health.xids.table',"
        "'slurm_hooks.health.xids.cases', 'subprocess', 'json', 'logging')])"
    )
    done = run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[]\n")
