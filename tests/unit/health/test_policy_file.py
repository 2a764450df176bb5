"""The health policy: good values are obeyed, bad ones are all told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy
from slurm_hooks.health.policy_file import (
    PolicyError,
    load_policy,
    parse_policy,
    policy_or_defaults,
)
from slurm_hooks.health.registry import all_checks

_SOME_CHECK = next(check.name for check in all_checks())
_EVERYTHING = f"""
observe: true
checks:
  {_SOME_CHECK}: off
xids:
  45: REBOOT
  79: WARN
machine_types:
  a3-highgpu-8g: {{gpus: 8, nvlinks: 18, rdma_ports: 0, pcie_lanes: 16}}
most_restarts: 5
disks: [/, /scratch]
disk_full_verdict: REPLACE
thresholds: {{disk_full_percent: 95}}
deadlines: {{prolog: 7}}
"""


def test_every_key_is_obeyed() -> None:
    policy = parse_policy(_EVERYTHING, "health.yaml")

    assert policy.observe
    assert policy.disabled_checks == {_SOME_CHECK}
    assert policy.xids == {45: Verdict.REBOOT, 79: Verdict.WARN}
    assert policy.machine_types == {
        "a3-highgpu-8g": ExpectedHardware(gpus=8, nvlinks=18, rdma_ports=0, pcie_lanes=16)
    }
    assert policy.most_restarts == 5
    assert policy.disks == ("/", "/scratch")
    assert policy.disk_full_verdict is Verdict.REPLACE
    assert policy.thresholds.disk_full_percent == 95
    assert policy.deadlines.prolog == 7


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}"])
def test_an_empty_file_leaves_every_default(text: str) -> None:
    assert parse_policy(text, "health.yaml") == HealthPolicy()


def test_a_single_check_can_be_observed_only() -> None:
    policy = parse_policy(f"checks: {{{_SOME_CHECK}: observe}}", "health.yaml")

    assert policy.observed_checks == {_SOME_CHECK}
    assert policy.disabled_checks == frozenset()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("obseve: true", "obseve: unknown, write one of observe"),
        ("observe: maybe", "observe: 'maybe' is neither true nor false"),
        ("checks: {disk: off}", "checks.disk: no such check"),
        (f"checks: {{{_SOME_CHECK}: sometimes}}", "write one of on, off, observe"),
        ("xids: {seventy: REBOOT}", "xids.seventy: an Xid is a number"),
        ("xids: {79: EXPLODE}", "xids.79: 'EXPLODE' is no verdict"),
        ("machine_types: {a3: {gpu: 8}}", "machine_types.a3.gpu: unknown, write one of gpus"),
        ("most_restarts: -1", "most_restarts: -1 is no number"),
        ("disks: [scratch]", "disks: 'scratch' is no absolute path"),
        ("disk_full_verdict: REBOOT", "'REBOOT' is none of WARN, MANUAL, REPLACE"),
        ("disk_full_verdict: [1]", "[1] is none of WARN, MANUAL, REPLACE"),
        ("burn_in: dcgmi", "burn_in: 'dcgmi' is no command: write auto, off, or a list"),
        ("burn_in: [dcgmi, diag]", "with an absolute path first"),
        ("burn_in: [/usr/bin/dcgmi, diag, -r, 2]", "is no command"),
        ("burn_in: true", "burn_in: True is no command"),
        ("deadlines: {burn_in: 1500}", "deadlines.burn_in: 1500 and 3 for the report are too long"),
        ("thresholds: {disk_full_percent: much}", "'much' is no number of 0 or more"),
        ("deadlines: {prolog: 60}", "deadlines.prolog: 60 and 3 for the report are too long"),
        ("thresholds: 7", "thresholds: must be a mapping"),
        ("- observe", "must be a mapping of keys to values"),
        ("observe: [", "health.yaml"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_is_right(text: str, mistake: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "health.yaml")

    assert mistake in str(caught.value)


@pytest.mark.parametrize(
    ("text", "command"),
    [("auto", None), ("off", ()), ("[/opt/burn, '60']", ("/opt/burn", "60")), ("", None)],
)
def test_a_burn_in_is_a_command_or_dcgms_or_none(
    text: str, command: tuple[str, ...] | None
) -> None:
    assert parse_policy(f"burn_in: {text}", "health.yaml").burn_in == command


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy("observe: maybe\nxids: {79: EXPLODE}\ndisks: [scratch]", "health.yaml")

    assert len(caught.value.mistakes) == 3


def _host_with_policy(root: Path, text: str, mode: int = 0o644) -> Host:
    host = Host(root=str(root), name="n1")
    file = Path(host.policy_file)
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return host


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_policy(Host(root=str(tmp_path))) == HealthPolicy()


def test_a_file_that_others_may_write_is_not_obeyed(tmp_path: Path) -> None:
    host = _host_with_policy(tmp_path, "observe: true", 0o666)

    with pytest.raises(PolicyError, match="writable by nobody else"):
        load_policy(host)


def test_a_run_goes_on_with_the_defaults_and_says_so_in_the_log(tmp_path: Path) -> None:
    host = _host_with_policy(tmp_path, "obseve: true")
    log = Path(host.log_file)
    log.parent.mkdir(parents=True)

    policy = policy_or_defaults(host, Context.PROLOG)

    assert policy == HealthPolicy()
    assert "policy not obeyed" in log.read_text() and "obseve: unknown" in log.read_text()


@pytest.mark.parametrize(
    ("deadlines", "name"),
    [
        ("{prolog: 7.1}", "prolog"),
        ("{prolog: 5, report: 6}", "prolog"),
        ("{background: 47.1}", "background"),
    ],
)
def test_a_run_that_slurmd_would_not_wait_for_is_a_mistake(deadlines: str, name: str) -> None:
    with pytest.raises(PolicyError, match=f"deadlines.{name}"):
        parse_policy(f"deadlines: {deadlines}", "health.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "deadlines: {prolog: 0}",
        "deadlines: {epilog: 0.5}",
        "deadlines: {report: .nan}",
        "deadlines: {prolog: .nan}",
        "deadlines: {site_script: .inf}",
        "thresholds: {disk_full_percent: -.inf}",
        "machine_types: {m: {gpus: 7.5}}",
        "machine_types: {m: [1]}",
        "checks: {load: [on]}",
        "checks: {load: {on: off}}",
        "xids: {79: [WARN]}",
        "xids: {[1]: WARN}",
        "xids: {1.5: WARN}",
        "observe: 2026-13-45",
        "disks: {a: b}",
        "most_restarts: .inf",
        "[" * 5000,
    ],
)
def test_no_slip_takes_a_healthy_node_for_a_sick_one_or_ends_the_run(text: str) -> None:
    with pytest.raises(PolicyError):
        parse_policy(text, "health.yaml")
