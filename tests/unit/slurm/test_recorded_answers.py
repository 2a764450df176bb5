"""Text and JSON of 22.05.8, 24.11.5 and 26.05.5 say the same of the same cluster.

The cluster: four cloud nodes, the first three waking for jobs 1 and 7, the fourth drained; a job
array, a heterogeneous job, a held job whose name imitates another job's record, a cancelled job
and a reservation. The texts hold what looks like fields.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slurm_hooks.slurm.json_records import (
    jobs_from_json,
    nodes_from_json,
    partitions_from_json,
    reservations_from_json,
)
from slurm_hooks.slurm.model import (
    BaseState,
    Job,
    JobState,
    Node,
    NodeFlag,
    Partition,
    Reservation,
    part_of,
)
from slurm_hooks.slurm.records import Parsed
from slurm_hooks.slurm.text_records import (
    jobs_from_text,
    nodes_from_text,
    partitions_from_text,
    reservations_from_text,
)
from tests.unit.slurm.recorded import recorded

NODES = [
    nodes_from_text(recorded("22.05", "nodes.txt")),
    nodes_from_text(recorded("24.11", "nodes.txt")),
    nodes_from_text(recorded("26.05", "nodes.txt")),
    nodes_from_json(recorded("24.11", "nodes.json")),
    nodes_from_json(recorded("26.05", "nodes.json")),
]
JOBS_OF_JSON = [
    jobs_from_json(recorded("22.05", "jobs.json")),
    jobs_from_json(recorded("24.11", "jobs.json")),
    jobs_from_json(recorded("26.05", "jobs.json")),
]
JOBS_OF_TEXT = [
    jobs_from_text(recorded("22.05", "jobs.txt")),
    jobs_from_text(recorded("24.11", "jobs.txt")),
    jobs_from_text(recorded("26.05", "jobs.txt")),
]
PARTITIONS = [
    partitions_from_text(recorded("22.05", "partitions.txt")),
    partitions_from_text(recorded("24.11", "partitions.txt")),
    partitions_from_text(recorded("26.05", "partitions.txt")),
    partitions_from_json(recorded("24.11", "partitions.json")),
    partitions_from_json(recorded("26.05", "partitions.json")),
]
RESERVATIONS = [
    reservations_from_text(recorded("22.05", "reservations.txt")),
    reservations_from_text(recorded("24.11", "reservations.txt")),
    reservations_from_text(recorded("26.05", "reservations.txt")),
    reservations_from_json(recorded("24.11", "reservations.json")),
    reservations_from_json(recorded("26.05", "reservations.json")),
]


@pytest.mark.parametrize("parsed", [*NODES, *JOBS_OF_JSON, *PARTITIONS, *RESERVATIONS])
def test_real_answers_have_no_unreadable_record(parsed: object) -> None:
    assert getattr(parsed, "unreadable") == ()  # noqa: B009


@pytest.mark.parametrize("nodes", [parsed.records for parsed in NODES])
def test_drained_node_keeps_its_odd_texts(nodes: dict[str, Node]) -> None:
    node = nodes["demo-cpu-3"]
    assert node.reason == 'slurm-hooks: a=b State=IDLE "q" [x]'
    assert node.comment == "c State=DOWN d"
    assert node.extra == '{"a": "b = c"}'
    assert node.state.base is BaseState.IDLE
    assert node.state.flags == {NodeFlag.CLOUD, NodeFlag.DRAIN, NodeFlag.POWERED_DOWN}
    assert node.partitions == ("cpu",)
    assert node.boot_time_utc is None


@pytest.mark.parametrize("nodes", [parsed.records for parsed in NODES])
def test_waking_node_is_allocated(nodes: dict[str, Node]) -> None:
    assert list(nodes) == [f"demo-cpu-{index}" for index in range(4)]
    assert nodes["demo-cpu-0"].state.base is BaseState.ALLOCATED
    assert nodes["demo-cpu-0"].state.has(NodeFlag.POWERING_UP)
    assert nodes["demo-cpu-0"].address == "127.0.0.1"


@pytest.mark.parametrize("jobs", [parsed.records for parsed in JOBS_OF_JSON + JOBS_OF_TEXT])
def test_configuring_job_has_its_nodes_and_times(jobs: dict[int, Job]) -> None:
    job = jobs[1]
    assert job.state is JobState.CONFIGURING
    assert job.nodes == ("demo-cpu-0", "demo-cpu-1")
    assert job.admin_comment == 'slurm-hooks: waiting "x" = y, Restarts=7'
    assert job.time_limit_seconds == ((2 * 24 + 1) * 60 + 1) * 60, "Slurm rounds up to minutes"
    assert job.start_time_utc is not None
    assert job.start_time_utc.replace(second=0) in {
        datetime(2026, 12, 1, 5, 35, tzinfo=UTC),
        datetime(2026, 12, 1, 5, 36, tzinfo=UTC),
        datetime(2026, 12, 1, 5, 55, tzinfo=UTC),
        datetime(2026, 12, 1, 5, 56, tzinfo=UTC),
    }
    assert (job.user, job.partition, job.restarts) == ("root", "cpu", 0)
    assert (job.requeue, job.batch) == (True, True)


@pytest.mark.parametrize("jobs", [parsed.records for parsed in JOBS_OF_JSON])
def test_array_that_waits_is_one_job_and_keeps_its_name(jobs: dict[int, Job]) -> None:
    assert jobs[2].name == "name with UserId=other(7) = blank"
    assert jobs[2].admin_comment == ""
    assert jobs[2].state is JobState.PENDING
    assert jobs[2].nodes == ()


@pytest.mark.parametrize("parsed", [JOBS_OF_JSON[0], JOBS_OF_TEXT[0]])
def test_array_task_with_nodes_is_known_by_its_raw_id(parsed: Parsed[int, Job]) -> None:
    assert parsed.records[7].nodes == ("demo-cpu-2",)
    assert parsed.records[7].state is JobState.CONFIGURING


@pytest.mark.parametrize("jobs", [parsed.records for parsed in JOBS_OF_JSON + JOBS_OF_TEXT])
def test_components_of_a_heterogeneous_job_are_jobs(jobs: dict[int, Job]) -> None:
    components = [job for job in jobs.values() if not job.requeue]
    assert [job.state for job in components] == [JobState.PENDING, JobState.PENDING]


@pytest.mark.parametrize("jobs", [parsed.records for parsed in JOBS_OF_JSON + JOBS_OF_TEXT])
def test_first_component_of_a_heterogeneous_job_is_addressed_as_a_part(
    jobs: dict[int, Job],
) -> None:
    parts = {job.job_id: job.part for job in jobs.values() if not job.requeue}
    assert [parts[job_id] for job_id in sorted(parts)] == ["+0", ""]
    wholes = {job.job_id: job.het_job_id for job in jobs.values()}
    assert {wholes[job_id] for job_id in parts} == {min(parts)}
    assert {wholes[job_id] for job_id in wholes.keys() - parts.keys()} <= {None}
    assert {job.part for job in jobs.values() if job.requeue} == {""}


@pytest.mark.parametrize(
    ("ids", "part"),
    [
        ((7, 7, 3, 0, 0), "_3"),
        ((8, 7, 2, 0, 0), ""),
        ((7, 7, None, 0, 0), ""),
        ((9, 0, None, 9, 0), "+0"),
        ((10, 0, None, 9, 1), ""),
        ((11, None, None, None, None), ""),
    ],
)
def test_only_the_job_that_has_the_id_of_the_whole_is_a_part(
    ids: tuple[int, int | None, int | None, int | None, int | None], part: str
) -> None:
    assert part_of(*ids) == part


@pytest.mark.parametrize("jobs", [parsed.records for parsed in JOBS_OF_JSON + JOBS_OF_TEXT])
def test_ended_job_that_is_still_listed_is_not_active(jobs: dict[int, Job]) -> None:
    ended = next(job for job in jobs.values() if job.name == "ended")
    assert ended.state is JobState.CANCELLED
    assert not ended.is_active
    assert jobs[1].is_active


@pytest.mark.parametrize("jobs", [parsed.records for parsed in JOBS_OF_JSON])
def test_job_name_cannot_imitate_another_job_in_json(jobs: dict[int, Job]) -> None:
    imitator = next(job for job in jobs.values() if job.name.startswith("evil\nJobId=1"))
    assert imitator.state is JobState.PENDING
    assert jobs[1].state is JobState.CONFIGURING


def test_imitated_job_in_text_does_not_replace_the_real_one() -> None:
    parsed = jobs_from_text(recorded("22.05", "jobs.txt"))
    assert parsed.records[1].state is JobState.CONFIGURING
    assert len(parsed.unreadable) == 2


@pytest.mark.parametrize("partitions", [parsed.records for parsed in PARTITIONS])
def test_partitions_have_their_nodes(partitions: dict[str, Partition]) -> None:
    names = tuple(f"demo-cpu-{index}" for index in range(4))
    assert partitions == {
        "cpu": Partition("cpu", "UP", names),
        "empty": Partition("empty", "DOWN", ()),
    }


@pytest.mark.parametrize("reservations", [parsed.records for parsed in RESERVATIONS])
def test_reservation_has_its_nodes_times_and_flags(
    reservations: dict[str, Reservation],
) -> None:
    reservation = reservations["slurm-hooks-end"]
    assert reservation.nodes == ("demo-cpu-0", "demo-cpu-1")
    assert reservation.flags == {"MAINT", "IGNORE_JOBS", "SPEC_NODES"}
    assert reservation.start_time_utc is not None
    assert reservation.end_time_utc is not None
    assert (reservation.end_time_utc - reservation.start_time_utc).total_seconds() == 600
