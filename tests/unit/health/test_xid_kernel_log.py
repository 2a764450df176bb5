"""The kernel log is read without waiting, within limits, and never passes for empty."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.health.xids.kernel_log import KernelLog, Limits, LoggedXid, Since, read_kernel_log

PATIENT = Limits(seconds=120.0)


def record(sequence: int, text: str, microseconds: int = 0, priority: int = 4) -> str:
    return f"{priority},{sequence},{microseconds},-;{text}"


def xid(number: int, text: str = "", address: str = "0000:9b:00") -> str:
    return f"NVRM: Xid (PCI:{address}): {number}, {text}"


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "kmsg"


def read(log_file: Path, *records: str, since: Since | None = None) -> KernelLog:
    log_file.write_text("".join(f"{line}\n" for line in records))
    return read_kernel_log(str(log_file), since or Since())


def numbers_of(found: KernelLog) -> list[str]:
    return [logged.last.rpartition("): ")[2].partition(",")[0] for logged in found.xids]


def test_xid_lines_are_found_among_others(log_file: Path) -> None:
    lost = record(8, xid(79, "GPU has fallen off the bus."))
    found = read(
        log_file,
        record(7, "Linux version 6.1.0"),
        lost,
        " SUBSYSTEM=pci",
        record(9, "NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus."),
    )
    assert found.problem == ""
    assert (found.first_sequence, found.last_sequence) == (7, 9)
    assert found.xids == (LoggedXid(lost, lost, times=1),)


def test_equal_lines_are_one_with_its_first_and_last_record(log_file: Path) -> None:
    lines = [record(number, xid(31, "MMU Fault"), number * 10) for number in range(5)]
    found = read(log_file, *lines)
    assert found.xids == (LoggedXid(lines[0], lines[-1], times=5),)


def test_lines_of_other_gpus_are_others(log_file: Path) -> None:
    found = read(log_file, record(1, xid(31)), record(2, xid(31, address="0000:9c:00")))
    assert len(found.xids) == 2


@pytest.mark.parametrize(
    ("since", "left"),
    [
        (Since(), ["13", "31", "48"]),
        (Since(sequence=1), ["31", "48"]),
        (Since(sequence=3), []),
        (Since(microseconds=20), ["48"]),
        (Since(sequence=1, microseconds=20), ["48"]),
    ],
)
def test_only_records_after_the_bound_count(log_file: Path, since: Since, left: list[str]) -> None:
    lines = [record(1, xid(13), 10), record(2, xid(31), 20), record(3, xid(48), 30)]
    found = read(log_file, *lines, since=since)
    assert numbers_of(found) == left
    assert found.last_sequence == 3


def test_line_before_the_bound_does_not_count_for_its_repetition(log_file: Path) -> None:
    lines = [record(1, xid(31)), record(2, xid(31))]
    found = read(log_file, *lines, since=Since(sequence=1))
    assert found.xids == (LoggedXid(lines[1], lines[1], times=1),)


def test_record_that_a_program_wrote_is_left_out(log_file: Path) -> None:
    found = read(log_file, record(1, xid(79), priority=12), record(2, xid(48)))
    assert numbers_of(found) == ["48"]


def test_record_that_quotes_an_xid_is_left_out(log_file: Path) -> None:
    assert read(log_file, record(1, f"agent: {xid(79)}")).xids == ()


def test_missing_log_is_a_problem(log_file: Path) -> None:
    found = read_kernel_log(str(log_file), Since())
    assert found.problem == "the kernel log cannot be read: No such file or directory"
    assert found.xids == ()


def test_log_that_is_a_directory_is_a_problem(tmp_path: Path) -> None:
    assert "cannot be read" in read_kernel_log(str(tmp_path), Since()).problem


@pytest.mark.parametrize("content", ["", "\n", "hello\n", "1,2;\n", "a,b,c,-;text\n", "\0\0\0"])
def test_log_without_records_is_a_problem(log_file: Path, content: str) -> None:
    log_file.write_text(content)
    assert read_kernel_log(str(log_file), Since()).problem == "the kernel log has no records"


def test_last_record_without_a_line_end_counts(log_file: Path) -> None:
    log_file.write_text(f"{record(1, 'boot')}\n{record(2, xid(79))}")
    found = read_kernel_log(str(log_file), Since())
    assert numbers_of(found) == ["79"]
    assert found.last_sequence == 2


def test_records_cut_by_the_buffer_are_put_together(log_file: Path) -> None:
    lines = [record(number, xid(31, f"{'x' * 700} {number}")) for number in range(100)]
    found = read(log_file, *lines)
    assert [logged.first for logged in found.xids] == lines


def test_storm_of_lines_comes_to_its_different_ones(log_file: Path) -> None:
    with log_file.open("w") as log:
        log.writelines(
            record(number, xid(31, f"pid={number % 29}, MMU Fault")) + "\n"
            for number in range(800_000)
        )
    found = read_kernel_log(str(log_file), Since(), PATIENT)
    assert found.problem == ""
    assert len(found.xids) == 29
    assert sum(logged.times for logged in found.xids) == 800_000


def test_storm_that_takes_too_long_is_a_problem_and_what_was_read_counts(log_file: Path) -> None:
    with log_file.open("w") as log:
        log.writelines(record(number, xid(31)) + "\n" for number in range(100_000))
    found = read_kernel_log(str(log_file), Since(), Limits(seconds=0.0))
    assert found.problem == "the kernel log takes more than 0 s to read"
    assert 0 < sum(logged.times for logged in found.xids) < 100_000


def test_log_beyond_its_bytes_is_a_problem(log_file: Path) -> None:
    with log_file.open("w") as log:
        log.writelines(record(number, "x" * 100) + "\n" for number in range(100_000))
    found = read_kernel_log(str(log_file), Since(), Limits(seconds=120.0, bytes=1_000_000))
    assert found.problem == "the kernel log has more than 1000000 bytes"


def test_storm_of_different_lines_hides_no_other_xid(log_file: Path) -> None:
    lines = [record(number, xid(31, f"faulted @ {number:#x}")) for number in range(5_000)]
    log_file.write_text("\n".join([*lines, record(5_000, xid(79))]) + "\n")
    found = read_kernel_log(str(log_file), Since(), Limits(seconds=120.0, texts=50))
    assert len(found.xids) == 52
    assert numbers_of(found)[-1] == "79"
    assert sum(logged.times for logged in found.xids) == 5_001


def test_log_that_waits_for_more_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    try:
        os.write(writer, f"{record(1, xid(79))}\n".encode())
        found = read_kernel_log(str(pipe), Since())
    finally:
        os.close(writer)
    assert found.problem == ""
    assert numbers_of(found) == ["79"]


class Ring:
    """Answers of /dev/kmsg one after the other: records, or errors with their numbers."""

    def __init__(self, answers: list[str | int]) -> None:
        self._answers: Iterator[str | int] = iter(answers)

    def read(self, _descriptor: int, _size: int) -> bytes:
        answer = next(self._answers, errno.EAGAIN)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return f"{answer}\n".encode()


def read_ring(monkeypatch: pytest.MonkeyPatch, log_file: Path, *answers: str | int) -> KernelLog:
    log_file.touch()
    monkeypatch.setattr(os, "read", Ring(list(answers)).read)
    return read_kernel_log(str(log_file), Since())


def test_record_that_was_overwritten_while_reading_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, log_file: Path
) -> None:
    answers: list[str | int] = [record(1, "boot"), errno.EPIPE, record(90, xid(79))]
    found = read_ring(monkeypatch, log_file, *answers)
    assert found.problem == ""
    assert (numbers_of(found), found.last_sequence) == (["79"], 90)


def test_log_that_is_overwritten_for_ever_is_given_up(
    monkeypatch: pytest.MonkeyPatch, log_file: Path
) -> None:
    log_file.touch()
    monkeypatch.setattr(os, "read", Ring([errno.EPIPE] * 100_000).read)
    found = read_kernel_log(str(log_file), Since(), Limits(seconds=0.0))
    assert found.problem == "the kernel log takes more than 0 s to read"


def test_other_error_is_a_problem_and_what_was_read_counts(
    monkeypatch: pytest.MonkeyPatch, log_file: Path
) -> None:
    found = read_ring(monkeypatch, log_file, record(1, xid(79)), errno.EIO, record(2, xid(48)))
    assert found.problem == "the kernel log cannot be read: Input/output error"
    assert numbers_of(found) == ["79"]


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="needs a readable kernel log")
def test_log_of_this_machine_is_read_and_goes_on() -> None:
    first = read_kernel_log("/dev/kmsg", Since(), PATIENT)
    assert first.problem == ""
    assert first.first_sequence is not None
    assert first.last_sequence is not None
    again = read_kernel_log("/dev/kmsg", Since(), PATIENT)
    assert again.last_sequence is not None
    assert again.last_sequence >= first.last_sequence


@given(st.binary(max_size=300))
def test_no_content_makes_the_reader_raise(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    log_file = tmp_path_factory.mktemp("log") / "kmsg"
    log_file.write_bytes(content)
    read_kernel_log(str(log_file), Since())
