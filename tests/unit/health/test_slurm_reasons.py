"""Slurm's own reasons are told from those of people who quote them."""

from __future__ import annotations

import pytest

from slurm_hooks.health.reason import health_reason_of
from slurm_hooks.health.slurm_reasons import is_of_slurm, tells_missing_gpus

_MEMORY = "Low RealMemory (reported:1935 < 100.00% of configured:64000)"
_GPUS = "gres/gpu count reported lower than configured (7 < 8)"


@pytest.mark.parametrize(
    "reason",
    [
        "Not responding",
        "ResumeTimeout reached",
        "Node unexpectedly rebooted",
        "batch job complete failure",
        "Duplicate jobid",
        "Kill task failed",
        "Prolog error",
        "Epilog error",
        "Prolog/Epilog failure",
        "Job env setup error",
        "Low RealMemory",
        _MEMORY,
        "Low TmpDisk",
        "Low TmpDisk (Node:1 < Config:2)",
        "Low CPUs",
        "Low socket*core*thread count, Low CPUs",
        f"Low socket*core*thread count, Low CPUs, {_MEMORY}",
        f"{_GPUS}, {_MEMORY}",
        _GPUS,
        "gres/gpu:h100 count too low (7 < 8)",
        "gres/gpu count changed and jobs are using them (7 != 8)",
        "gres/gpu GRES autodetected core affinity 0-23 on node g-0 doesn't match socket boundaries."
        " (Socket 0 is cores 0-0). Consider setting Parameters=l3cache_as_socket",
        "Could not unpack gres data",
        "Reported active features (a,b) are not a superset of currently active changeable features",
        "Kill task failed : Not responding",
        "Prolog error : ResumeTimeout reached",
        "reboot timed out",
        "new kernel : reboot timed out",
        "new kernel : reboot issued : reboot timed out",
    ],
)
def test_reason_that_slurm_gives_by_itself_is_slurms(reason: str) -> None:
    assert is_of_slurm(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "Kill task failed twice today, keep it off until I have looked",
        "Not responding to IPMI",
        "Prolog errors since the upgrade - alice",
        "Prolog error: waiting for the vendor",
        "Prolog error, alice looks at it",
        "Epilog error of our own script",
        "Low RealMemory after the DIMM went, ticket 4711",
        "Low CPUs, ask alice",
        "Low CPUs (ask alice)",
        "gres/gpu is loose",
        f"{_GPUS} : alice has it",
        f"{_GPUS} alice has it",
        "Duplicate jobid? See mail",
        "fan : loud",
        "Not responding : alice has it",
        "the BIOS reboot timed out",
        "not responding",
    ],
)
def test_reason_that_a_person_begins_with_slurms_words_is_the_persons(reason: str) -> None:
    assert not is_of_slurm(reason)


def test_missing_gpus_of_which_a_person_has_something_to_say_are_the_persons() -> None:
    assert health_reason_of(f"{_GPUS} : reboot issued") is not None
    assert health_reason_of(f"{_GPUS}, {_MEMORY}") is not None
    for text in (f"{_GPUS} : alice has it", f"{_GPUS} alice has it", f"{_GPUS}, alice has it"):
        assert health_reason_of(text) is None


@pytest.mark.parametrize(
    ("reason", "is_so"),
    [(_GPUS, True), ("gres/gpu:h100 count too low (7 < 8)", True), (_MEMORY, False)],
)
def test_missing_gpus_are_read_from_slurms_reason(reason: str, is_so: bool) -> None:
    assert tells_missing_gpus(reason) is is_so
