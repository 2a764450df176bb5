"""Prolog, Epilog and HealthCheckProgram as slurmd runs them: processes in bare surroundings."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.health import before_job
from slurm_hooks.health.drains import OwnDrain, read_drain, remember_drain, remember_reboot
from slurm_hooks.health.driver.model import EccCounts, Fabric
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import Identity
from slurm_hooks.health.job_files import jobs_on_node
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.probe_name import PROBE_NAME
from slurm_hooks.health.report import Report
from slurm_hooks.sandbox.gpu.state import ATTACH, Hang
from tests.unit.health.node_roots import BOOT_ID, NodeRoot
from tests.unit.health.scontrol import NodesScontrol
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
"""Each test starts the programs as slurmd does, and waits as slurmd would."""

_BOOT = BOOT_ID[:8]
_IDENTITY = f"inst=4711 boot={_BOOT}"
_INSTALLED = Path(sys.executable).parent
_PATIENCE_SECONDS = 60
_JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7",
    "SLURMD_NODENAME": "g-0",
}
_FAILED = {**_JOB, "SLURM_JOB_EXIT_CODE": "256", "SLURM_JOB_RESTART_COUNT": "0"}


class Slurmd:
    """Runs a node's programs, with a scontrol that notes what slurmctld is told."""

    def __init__(self, node: NodeRoot, scontrol: NodesScontrol) -> None:
        self.node = node
        self.scontrol = scontrol

    def command(self, program: str) -> list[str]:
        return [
            *(sys.executable, "-I", "-m", f"slurm_hooks.programs.{program}"),
            *self.options,
        ]

    @property
    def options(self) -> list[str]:
        return [
            *("--root", str(self.node.directory)),
            *("--metadata-url", "http://127.0.0.1:9/v1"),
            *("--slurm-bin-dir", str(self.scontrol.directory)),
        ]

    def start(self, program: str, environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(program),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, program: str, environment: dict[str, str]) -> int:
        """The exit status. Nothing is ever said to slurmd."""
        process = self.start(program, environment)
        said, _ = process.communicate(timeout=_PATIENCE_SECONDS)
        assert said == ""
        return process.returncode

    @property
    def reasons(self) -> list[str]:
        """The reasons that were written, state and reason in one call."""
        changes = [call for call in self.scontrol.changes if call[0] == "update"]
        assert all(call[1:3] == ["nodename=g-0", "state=drain"] for call in changes)
        return [call[3].removeprefix("reason=") for call in changes]

    @property
    def log(self) -> str:
        path = self.node.path("var/log/slurm-hooks/health.log")
        return path.read_text() if path.exists() else ""


@pytest.fixture
def slurmd(node: NodeRoot, tmp_path: Path) -> Slurmd:
    """A healthy node of eight GPUs that knows who it is."""
    (tmp_path / "slurm").mkdir()
    node.path("var/log/slurm-hooks").mkdir(parents=True)
    _know(node, BOOT_ID)
    node.write("etc/slurm-hooks/health.yaml", "disks: []\n")
    return Slurmd(node, NodesScontrol(tmp_path / "slurm"))


def _know(node: NodeRoot, boot_id: str) -> None:
    node.write("proc/sys/kernel/random/boot_id", f"{boot_id}\n")
    node.write("var/lib/slurm-hooks/health/identity", f"{boot_id[:8]}\n4711\na3-highgpu-8g\n")


def _policy(node: NodeRoot, text: str) -> None:
    node.write("etc/slurm-hooks/health.yaml", f"disks: []\n{text}\n")


def test_a_job_starts_on_a_healthy_node_and_slurmctld_hears_nothing(slurmd: Slurmd) -> None:
    assert slurmd.run("prolog", _JOB) == 0
    assert slurmd.run("epilog", {**_JOB, "SLURM_JOB_EXIT_CODE": "0"}) == 0
    assert slurmd.run("health_check", {}) == 0

    assert slurmd.scontrol.calls == []
    assert slurmd.log == ""


def test_a_job_does_not_start_on_a_sick_node_and_the_reason_says_all(slurmd: Slurmd) -> None:
    slurmd.node.change_gpu(3, recovery_action=2)

    assert slurmd.run("prolog", {**_JOB, "SLURM_JOB_RESTART_COUNT": "2"}) == 1

    assert slurmd.reasons == [
        "slurm-hooks: REBOOT recovery_action gpu 3 driver asks for action 2 (node reboot)"
        f" {_IDENTITY} ctx=prolog job=7 restarts=2 gpus=8/8"
    ]
    assert "ERROR" in slurmd.log


def test_a_lost_gpu_keeps_the_job_away(slurmd: Slurmd) -> None:
    slurmd.node.change_gpu(7, is_lost=True)

    assert slurmd.run("prolog", _JOB) == 1
    assert slurmd.reasons[0].startswith("slurm-hooks: REBOOT ")


def test_an_epilog_drains_too(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.change_gpu(3, ecc=EccCounts(0, 4))

    assert slurmd.run("epilog", {**_JOB, "SLURM_JOB_EXIT_CODE": "0"}) == 1

    assert slurmd.reasons[0].startswith("slurm-hooks: RESET ecc gpu 3 ")
    assert " ctx=epilog job=7 " in slurmd.reasons[0]


def test_a_prolog_tells_an_epilog_which_jobs_are_on_the_node(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    assert jobs_on_node(slurmd.node.host()) == (7,)

    slurmd.run("epilog", {**_JOB, "SLURM_JOB_EXIT_CODE": "0"})
    assert jobs_on_node(slurmd.node.host()) == ()


def test_a_persons_reason_stays_and_the_job_stays_away(slurmd: Slurmd) -> None:
    slurmd.node.change_gpu(3, recovery_action=2)
    slurmd.scontrol.knows("IDLE+DRAIN", "fan replaced on Friday")

    assert slurmd.run("prolog", _JOB) == 1

    assert slurmd.scontrol.changes == []
    assert "fan replaced" in slurmd.log


@pytest.mark.parametrize("trouble", ["hangs", "fails", "is absent"])
def test_without_slurmctld_the_exit_status_alone_keeps_the_job_away(
    slurmd: Slurmd, trouble: str
) -> None:
    slurmd.node.change_gpu(3, recovery_action=2)
    if trouble == "hangs":
        slurmd.scontrol.answers("show", sleeps=60)
    elif trouble == "fails":
        slurmd.scontrol.answers("show", says="Unable to contact slurm controller", status=1)
    else:
        slurmd.scontrol.directory.joinpath("scontrol").unlink()

    assert slurmd.run("prolog", _JOB) == 1
    assert "reason not written" in slurmd.log


def _probes_of(parent: int) -> set[int]:
    """The probes that a program has started: other tests have theirs at the same time."""
    found = set()
    for place in Path("/proc").iterdir():
        try:
            head, _, rest = (place / "stat").read_text().rpartition(")")
        except OSError:
            continue
        if head.endswith(f"({PROBE_NAME}") and int(rest.split()[1]) == parent:
            found.add(int(place.name))
    return found


@pytest.mark.parametrize("call", [ATTACH, "nvmlDeviceGetFieldValues"])
def test_a_driver_that_hangs_ends_the_prolog_in_time_and_condemns_the_node(
    slurmd: Slurmd, call: str
) -> None:
    _policy(slurmd.node, "deadlines: {prolog: 1.5}")
    slurmd.node.change_driver(hangs={call: Hang.STUBBORN})
    began = time.monotonic()

    assert slurmd.run("prolog", _JOB) == 1

    assert time.monotonic() - began < 10
    assert slurmd.reasons[0].startswith("slurm-hooks: REBOOT probe_hang ")


def test_the_output_ends_with_the_program_though_a_probe_lives_on(slurmd: Slurmd) -> None:
    slurmd.node.change_driver(hangs={ATTACH: Hang.STUBBORN})
    _policy(slurmd.node, "deadlines: {prolog: 7}")
    process = slurmd.start("prolog", _JOB)
    wait_until("the probe", lambda: bool(_probes_of(process.pid)), 20)
    probes = _probes_of(process.pid)

    process.kill()
    process.wait(_PATIENCE_SECONDS)
    try:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], 10)
        assert readable
        assert process.stdout.read() == ""
        assert all(Path("/proc", str(probe)).exists() for probe in probes)
    finally:
        for probe in probes:
            os.kill(probe, signal.SIGKILL)
        process.communicate(timeout=_PATIENCE_SECONDS)


def test_a_job_that_failed_on_broken_hardware_of_its_own_runs_again(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.change_gpu(3, ecc=EccCounts(0, 4))

    assert slurmd.run("epilog", _FAILED) == 1

    assert [call[0] for call in slurmd.scontrol.changes] == ["update", "requeue"]
    assert slurmd.scontrol.changes[1] == ["requeue", "7"]


@pytest.mark.parametrize(
    "changes",
    [
        {"SLURM_JOB_EXIT_CODE": "0"},
        {"SLURM_JOB_EXIT_CODE": ""},
        {"SLURM_JOB_EXIT_CODE": str(int(signal.SIGTERM))},
        {"SLURM_JOB_EXIT_CODE": str(int(signal.SIGKILL))},
        {"SLURM_JOB_RESTART_COUNT": "3"},
        {"SLURM_JOB_GPUS": "0,1"},
    ],
    ids=["ended well", "unknown end", "cancelled", "killed", "restarted thrice", "other GPUs"],
)
def test_a_job_that_the_hardware_did_not_fail_is_not_queued_again(
    slurmd: Slurmd, changes: dict[str, str]
) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.change_gpu(3, ecc=EccCounts(0, 4))

    assert slurmd.run("epilog", {**_FAILED, **changes}) == 1

    assert [call[0] for call in slurmd.scontrol.changes] == ["update"]


def test_a_job_whose_script_the_fault_killed_runs_again(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.change_gpu(3, ecc=EccCounts(0, 4))

    slurmd.run("epilog", {**_FAILED, "SLURM_JOB_EXIT_CODE": str(int(signal.SIGBUS))})

    assert slurmd.scontrol.changes[-1] == ["requeue", "7"]


def test_a_job_with_a_fault_of_its_own_program_is_not_queued_again(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.kernel_log(
        "4,1,36001000000,-;NVRM: Xid (PCI:0000:07:00): 31, pid=99, name=python, MMU Fault"
    )

    assert slurmd.run("epilog", _FAILED) == 0
    assert slurmd.scontrol.calls == []


def test_a_contained_error_costs_the_job_and_not_the_node(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.kernel_log(
        "4,1,36001000000,-;NVRM: Xid (PCI:0000:07:00): 94, pid=99, name=python, Contained: SM"
    )

    assert slurmd.run("epilog", _FAILED) == 0
    assert slurmd.scontrol.calls == [["requeue", "7"]]


def test_a_job_that_slurm_refuses_to_queue_again_is_told_and_no_more(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.change_gpu(3, ecc=EccCounts(0, 4))
    slurmd.scontrol.answers("requeue", says="Requested operation is invalid", status=1)

    assert slurmd.run("epilog", _FAILED) == 1
    assert "job not queued again" in slurmd.log
    assert "operation is invalid" in slurmd.log


def test_in_observe_mode_all_is_told_and_nothing_done(slurmd: Slurmd) -> None:
    _policy(slurmd.node, "observe: true")
    slurmd.node.change_gpu(3, recovery_action=2)

    assert slurmd.run("prolog", _JOB) == 0
    assert slurmd.run("epilog", _FAILED) == 0
    assert slurmd.run("health_check", {}) == 0

    assert slurmd.scontrol.calls == []
    assert slurmd.log.count("driver asks for action 2") == 3


@pytest.mark.parametrize(
    "text", ["observe: perhaps", "checks: {no_such: off}", "{", "- 1", "thresholds: 7", "\x00"]
)
def test_a_broken_policy_file_is_loud_and_the_defaults_hold(slurmd: Slurmd, text: str) -> None:
    slurmd.node.write("etc/slurm-hooks/health.yaml", text)
    slurmd.node.change_gpu(3, recovery_action=2)

    assert slurmd.run("prolog", _JOB) == 1
    assert "policy not obeyed" in slurmd.log


def test_a_policy_file_that_others_may_write_is_not_obeyed(slurmd: Slurmd) -> None:
    _policy(slurmd.node, "observe: true")
    slurmd.node.path("etc/slurm-hooks/health.yaml").chmod(0o666)
    slurmd.node.change_gpu(3, recovery_action=2)

    assert slurmd.run("prolog", _JOB) == 1


@pytest.mark.parametrize("program", ["prolog", "epilog", "health_check"])
@pytest.mark.parametrize(
    "options", [["--rooot", "/x"], ["--node", "a b"], ["--root"], ["surprise"]]
)
def test_a_program_that_is_called_wrongly_lets_the_job_start(
    slurmd: Slurmd, program: str, options: list[str]
) -> None:
    command = [*slurmd.command(program)[:4], *options]

    ended = subprocess.run(command, env=_JOB, capture_output=True, timeout=_PATIENCE_SECONDS)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


_BROKEN = """
import sys
import slurm_hooks.health.{module} as module
def fail(*_, **__):
    raise {error}
module.{name} = fail
from slurm_hooks.programs.{program} import main
sys.argv[1:] = {options!r}
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("program", "module", "name", "error"),
    [
        ("prolog", "before_job", "run_health", "RuntimeError('ours')"),
        ("prolog", "before_job", "before_job", "ImportError('half installed')"),
        ("epilog", "after_job", "run_health", "MemoryError()"),
        ("health_check", "in_background", "run_health", "RecursionError('ours')"),
    ],
)
def test_a_mistake_of_ours_is_loud_and_stops_no_job(
    slurmd: Slurmd, program: str, module: str, name: str, error: str
) -> None:
    code = _BROKEN.format(
        module=module, name=name, error=error, program=program, options=slurmd.options
    )

    ended = subprocess.run(
        [sys.executable, "-I", "-c", code],
        env=_JOB, capture_output=True, timeout=_PATIENCE_SECONDS,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert "ERROR" in slurmd.log
    assert "health run failed by itself" in slurmd.log


def test_a_failing_script_of_the_site_keeps_the_job_away(slurmd: Slurmd) -> None:
    script = slurmd.node.write("etc/slurm-hooks/prolog.d/10-scratch", "echo no scratch; exit 3\n")
    script.chmod(0o755)

    assert slurmd.run("prolog", _JOB) == 1
    assert slurmd.reasons[0].startswith(
        "slurm-hooks: MANUAL site_script 10-scratch exit 3: no scratch "
    )


def test_node_and_job_are_seen_to_before_the_sites_scripts_of_an_epilog(slurmd: Slurmd) -> None:
    slurmd.run("prolog", _JOB)
    slurmd.node.change_gpu(3, ecc=EccCounts(0, 4))
    calls, seen = slurmd.scontrol.directory / "calls", slurmd.node.path("seen")
    slurmd.node.write("etc/slurm-hooks/epilog.d/10-copy", f"cp {calls} {seen}; exit 3\n")

    assert slurmd.run("epilog", _FAILED) == 1

    assert '["requeue", "7"]' in seen.read_text()
    assert len(slurmd.reasons) == 1


def test_a_failing_script_of_an_epilog_drains_a_node_that_is_well(slurmd: Slurmd) -> None:
    slurmd.node.write("etc/slurm-hooks/epilog.d/10-scratch", "exit 3\n")

    assert slurmd.run("epilog", {**_JOB, "SLURM_JOB_EXIT_CODE": "0"}) == 1
    assert slurmd.reasons[0].startswith("slurm-hooks: MANUAL site_script 10-scratch exit 3 ")


def test_a_sick_node_that_nobody_uses_is_drained_in_the_background(slurmd: Slurmd) -> None:
    slurmd.node.change_gpu(3, recovery_action=1)

    assert slurmd.run("health_check", {"SLURMD_NODENAME": "g-0"}) == 1
    assert slurmd.reasons == [
        "slurm-hooks: RESET recovery_action gpu 3 driver asks for action 1 (GPU reset)"
        f" {_IDENTITY} ctx=background"
    ]


def test_a_node_that_is_drained_already_is_not_drained_anew(slurmd: Slurmd) -> None:
    slurmd.node.change_gpu(3, recovery_action=1)
    slurmd.run("health_check", {"SLURMD_NODENAME": "g-0"})
    slurmd.scontrol.knows("IDLE+DRAIN", slurmd.reasons[0])

    slurmd.run("health_check", {"SLURMD_NODENAME": "g-0"})

    assert len(slurmd.reasons) == 1
    assert slurmd.log.count("node drained") == 1


@pytest.fixture
def drained(slurmd: Slurmd) -> Iterator[Slurmd]:
    """A node that a health run drained and that is well."""
    remember_drain(slurmd.node.host(), OwnDrain(Verdict.REBOOT, _BOOT))
    slurmd.scontrol.knows("IDLE+DRAIN", f"slurm-hooks: REBOOT inventory 7 of 8 GPUs {_IDENTITY}")
    yield slurmd


def _check_in_background(slurmd: Slurmd) -> list[list[str]]:
    slurmd.run("health_check", {"SLURMD_NODENAME": "g-0"})
    return slurmd.scontrol.changes


def test_a_node_that_is_well_after_its_reboot_asks_to_be_let_back(drained: Slurmd) -> None:
    assert _check_in_background(drained) == []

    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    passed = "slurm-hooks: OK health_run passed inst=4711 boot=ffffffff ctx=background"
    assert _check_in_background(drained) == [["update", "nodename=g-0", f"reason={passed}"]]
    assert read_drain(drained.node.host()) is None


def test_a_node_that_is_sick_still_after_its_reboot_does_not_ask(drained: Slurmd) -> None:
    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    drained.node.change_gpu(3, recovery_action=1)

    assert [call[2] for call in _check_in_background(drained)] == ["state=drain"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"nvlinks": (True,) * 17 + (False,)}, "reason=slurm-hooks: RESET nvlink gpu 3 17 of 18"),
        ({"fabric": Fabric(3, 1, 0, 0)}, "reason=slurm-hooks: REBOOT fabric gpu 3"),
    ],
)
def test_a_node_does_not_ask_with_what_its_next_prolog_would_find(
    drained: Slurmd, fault: dict[str, object], says: str
) -> None:
    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    drained.node.change_gpu(3, **fault)

    (told,) = _check_in_background(drained)

    assert told[3].startswith(says)


def test_a_run_that_was_too_slow_to_look_at_all_lets_no_node_back(drained: Slurmd) -> None:
    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    _policy(drained.node, "deadlines: {background: 1}")
    drained.node.change_driver(slow={"nvmlDeviceGetFieldValues": 400})

    assert _check_in_background(drained) == []
    assert "call by call" in drained.log

    _policy(drained.node, "")
    drained.node.change_driver(slow={})
    assert len(_check_in_background(drained)) == 1


def test_a_node_asks_again_when_slurmctld_did_not_hear_it(drained: Slurmd) -> None:
    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    drained.scontrol.answers("show", says="Unable to contact slurm controller", status=1)
    assert _check_in_background(drained) == []

    drained.scontrol.knows("IDLE+DRAIN", f"slurm-hooks: REBOOT inventory 7 of 8 GPUs {_IDENTITY}")
    assert len(_check_in_background(drained)) == 1


def test_a_node_never_asks_over_a_persons_reason(drained: Slurmd) -> None:
    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    drained.scontrol.knows("IDLE+DRAIN", "fan replaced on Friday")

    assert _check_in_background(drained) == []
    assert "asked" not in drained.log


def _fail_unheard(slurmd: Slurmd) -> str:
    """A Prolog fails and slurmctld does not hear why, so Slurm gives its own reason. Ours."""
    slurmd.scontrol.answers("show", says="Unable to contact slurm controller", status=1)
    slurmd.node.change_gpu(3, recovery_action=1)
    assert slurmd.run("prolog", _JOB) == 1
    slurmd.node.change_gpu(3, recovery_action=0)
    slurmd.scontrol.knows("IDLE+DRAIN", "Prolog error")
    drained = read_drain(slurmd.node.host())
    assert drained is not None
    return drained.untold


def test_a_drain_whose_cause_was_not_heard_and_is_gone_is_told_all_the_same(slurmd: Slurmd) -> None:
    reason = _fail_unheard(slurmd)

    assert _check_in_background(slurmd) == [["update", "nodename=g-0", f"reason={reason}"]]
    assert reason.startswith("slurm-hooks: RESET recovery_action ")
    assert len(_check_in_background(slurmd)) == 1


@pytest.mark.parametrize(
    ("state", "reason"), [("IDLE+DRAIN", "fan replaced"), ("IDLE+CLOUD", ""), ("IDLE+DRAIN", "")]
)
def test_a_node_that_a_person_took_over_is_not_told_of_what_was_not_heard(
    slurmd: Slurmd, state: str, reason: str
) -> None:
    _fail_unheard(slurmd)
    slurmd.scontrol.knows(state, reason)

    assert _check_in_background(slurmd) == []
    slurmd.scontrol.knows("IDLE+DRAIN", "Prolog error")
    assert _check_in_background(slurmd) == []


def test_what_was_not_heard_is_told_again_until_it_is(slurmd: Slurmd) -> None:
    reason = _fail_unheard(slurmd)
    slurmd.scontrol.answers("show", says="Unable to contact slurm controller", status=1)
    assert _check_in_background(slurmd) == []

    slurmd.scontrol.knows("IDLE+DRAIN", "Prolog error")
    assert _check_in_background(slurmd) == [["update", "nodename=g-0", f"reason={reason}"]]


def test_a_failure_after_a_reboot_that_was_not_heard_is_told_though_it_is_gone(
    drained: Slurmd,
) -> None:
    _know(drained.node, f"ffffffff{BOOT_ID[8:]}")
    reason = _fail_unheard(drained)
    before = f"slurm-hooks: REBOOT inventory 7 of 8 GPUs {_IDENTITY} : reboot issued"
    drained.scontrol.knows("IDLE+DRAIN", before)

    assert _check_in_background(drained) == [["update", "nodename=g-0", f"reason={reason}"]]


def test_a_node_that_slurm_drained_asks_to_be_let_back_after_its_reboot(slurmd: Slurmd) -> None:
    remember_reboot(slurmd.node.host())
    missing = "gres/gpu count reported lower than configured (7 < 8) : reboot issued"
    slurmd.scontrol.knows("IDLE+DRAIN", missing)
    assert _check_in_background(slurmd) == []

    _know(slurmd.node, f"ffffffff{BOOT_ID[8:]}")
    passed = "slurm-hooks: OK health_run passed inst=4711 boot=ffffffff ctx=background"
    assert _check_in_background(slurmd) == [["update", "nodename=g-0", f"reason={passed}"]]


def test_a_reboot_does_not_make_a_node_forget_what_it_was_drained_for(slurmd: Slurmd) -> None:
    drain = OwnDrain(Verdict.REPLACE, _BOOT, untold="a reason")
    remember_drain(slurmd.node.host(), drain)
    remember_reboot(slurmd.node.host())
    assert read_drain(slurmd.node.host()) == drain


def test_a_job_that_must_go_elsewhere_does_not_condemn_the_node(
    slurmd: Slurmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (Finding("xid", Verdict.REQUEUE, "for this job alone"),)
    identity = Identity("4711", "a3-highgpu-8g", _BOOT)
    report = Report(Context.PROLOG, found, found, 0.1, "", {}, 8, identity)
    monkeypatch.setattr(before_job, "run_health", lambda *_: report)
    directory = str(slurmd.scontrol.directory)
    host = Host(str(slurmd.node.directory), "g-0", slurm_bin_directory=directory)

    assert before_job.before_job(host, _JOB) == 1

    assert slurmd.reasons[0].startswith("slurm-hooks: REQUEUE xid for this job alone ")
    slurmd.scontrol.knows("IDLE+DRAIN", slurmd.reasons[0])
    assert _check_in_background(slurmd)[-1][2].startswith("reason=slurm-hooks: OK ")


_SKIPPING = {
    "SLURM_JOB_COMMENT": "health=skip nohealthcheck observe: true",
    "SLURM_JOB_EXTRA": "skip_checks=all",
    "SLURM_JOB_NAME": "nohc",
    "SPANK_SKIP": "1",
}


def test_no_word_of_a_job_skips_a_check(slurmd: Slurmd) -> None:
    slurmd.node.change_gpu(3, recovery_action=2)

    assert slurmd.run("prolog", {**_JOB, **_SKIPPING}) == 1
    assert len(slurmd.reasons) == 1


@pytest.mark.parametrize("program", ["prolog", "epilog", "health-check"])
def test_nothing_around_an_installed_program_puts_other_code_into_it(
    slurmd: Slurmd, tmp_path: Path, program: str
) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "slurm_hooks").mkdir(parents=True)
    for name in ("sitecustomize.py", "usercustomize.py", "slurm_hooks/__init__.py", "startup.py"):
        (foreign / name).write_text("import os\nos._exit(42)\n")
    surroundings = {
        "PYTHONPATH": str(foreign),
        "PYTHONHOME": str(foreign),
        "PYTHONSTARTUP": str(foreign / "startup.py"),
        "PYTHONUSERBASE": str(foreign),
        "PYTHONBREAKPOINT": "os.abort",
        "PATH": str(foreign),
    }
    slurmd.node.change_gpu(3, recovery_action=2)

    ended = subprocess.run(
        [_INSTALLED / f"slurm-hooks-{program}", *slurmd.options],
        env={**_JOB, **surroundings}, cwd=foreign, capture_output=True, timeout=_PATIENCE_SECONDS,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")
    assert len(slurmd.reasons) == 1


def test_an_installed_program_works_by_a_link_from_another_place(
    slurmd: Slurmd, tmp_path: Path
) -> None:
    link = tmp_path / "slurm-hooks-prolog"
    link.symlink_to(_INSTALLED / "slurm-hooks-prolog")

    ended = subprocess.run([link, "--help"], env={}, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 0
    assert ended.stdout.startswith("usage: slurm-hooks-prolog ")
