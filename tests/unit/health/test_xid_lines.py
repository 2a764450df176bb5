"""Kernel log lines, as operators published them, become Xid events or nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.health.xids.lines import parse_xid
from tests.shared_data import SHARED, shared_file

XID_LINES = "data/xid-lines.tsv"
RECORD = "4,1402,519004116020,c;NVRM: Xid (PCI:0000:00:16): 119, pid=41177, name=agent, Timeout"


@dataclass(frozen=True)
class Row:
    line: str
    pci: str
    xid: str
    pid: str
    process: str
    note: str


def rows() -> list[Row]:
    if not (SHARED / XID_LINES).exists():
        return []
    text = shared_file(XID_LINES).read_text()
    return [Row(*row.split("\t")) for row in text.split("\n")[1:] if row]


def test_the_published_lines_are_there() -> None:
    shared_file(XID_LINES)
    assert len(rows()) == 147
    assert sum(1 for row in rows() if row.xid) > 80


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.note[:60])
def test_published_line_is_read_as_its_row_says(row: Row) -> None:
    event = parse_xid(row.line)
    if not row.xid:
        assert event is None
        return
    assert event is not None
    assert event.xid == int(row.xid)
    assert event.pci_address == row.pci
    assert event.process_id == (int(row.pid) if row.pid else None)
    assert event.process_name == row.process
    assert "pid=" not in event.text
    assert event.text in row.line


def test_kernel_record_has_sequence_and_seconds_since_boot() -> None:
    event = parse_xid(RECORD)
    assert event is not None
    assert (event.sequence, event.boot_seconds) == (1402, 519004.11602)
    assert (event.process_name, event.text) == ("agent", "Timeout")


@pytest.mark.parametrize(
    "prefix",
    [
        "[44643.002804] ",
        "[44643.002804] [ T4117] ",
        "<4>[44643.002804] ",
        "Jan 16 14:04:39 node02 kernel: [44643.002804] ",
        "kernel: [44643.002804] ",
    ],
)
def test_seconds_of_dmesg_are_seconds_since_boot(prefix: str) -> None:
    event = parse_xid(f"{prefix}NVRM: Xid (PCI:0000:05:00): 79, pid=1173, GPU has fallen off")
    assert event is not None
    assert (event.boot_seconds, event.sequence) == (44643.002804, None)


@pytest.mark.parametrize(
    "prefix",
    ["[Sun Feb 23 16:24:18 2025] ", "Jan 16 14:04:39 node02 kernel: ", "1766312044.5 n kernel: "],
)
def test_dates_are_not_guessed_at(prefix: str) -> None:
    event = parse_xid(f"{prefix}NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.")
    assert event is not None
    assert event.boot_seconds is None


@pytest.mark.parametrize("number", [94, 194, 948, 9, 4])
def test_xid_is_read_as_a_whole_number(number: int) -> None:
    event = parse_xid(f"NVRM: Xid (PCI:0000:05:00): {number}, Contained: SM (0x1)")
    assert event is not None
    assert event.xid == number


@pytest.mark.parametrize("number", ["94x", "0x5e", "-94", "123456", "٩٤"])
def test_what_only_begins_like_a_number_is_no_xid(number: str) -> None:
    assert parse_xid(f"NVRM: Xid (PCI:0000:05:00): {number}, Contained: SM (0x1)") is None


@pytest.mark.parametrize(
    "line",
    [
        RECORD.replace("4,1402", "12,1402"),
        f"Jan 16 14:04:39 node02 agent[77]: {RECORD.partition(';')[2]}",
        f'node02 agent: saw "kernel: {RECORD.partition(";")[2]}"',
        f"node02 agent: kernel: {RECORD.partition(';')[2]}",
        f"4,1402,519004116020,c;audit: {RECORD.partition(';')[2]}",
        f" {RECORD}",
    ],
)
def test_line_in_which_a_program_quotes_the_kernel_is_no_xid(line: str) -> None:
    assert parse_xid(RECORD) is not None
    assert parse_xid(line) is None


def test_number_in_the_text_is_not_the_xid() -> None:
    event = parse_xid("NVRM: Xid (PCI:0000:dc:00): 45, Ch 00000006 caused by previous Xid 149")
    assert event is not None
    assert event.xid == 45


@given(st.text())
def test_no_text_makes_the_parser_raise(text: str) -> None:
    parse_xid(text)


@given(
    prefix=st.sampled_from(["", "4,1,2,-;", "[1.5] ", "kern  :warn  : ", "a b kernel: ", "<4>["]),
    body=st.text(alphabet="NVRM: Xid(PC0123456789abcf,=pidname'<>unknow;[]\"\n\\", max_size=120),
)
def test_no_text_like_an_xid_makes_the_parser_raise(prefix: str, body: str) -> None:
    event = parse_xid(f"{prefix}NVRM: Xid ({body}")
    assert event is None or 0 <= event.xid <= 99_999


@given(
    xid=st.integers(0, 99_999),
    process_id=st.integers(1, 4_194_304),
    name=st.text(alphabet=st.characters(codec="ascii", exclude_characters=",\n\r"), max_size=15),
    text=st.text(alphabet=st.characters(codec="ascii", categories=["L", "N"]), max_size=40),
)
def test_what_the_driver_prints_is_read_back(
    xid: int, process_id: int, name: str, text: str
) -> None:
    line = (
        f"4,7,1000000,-;NVRM: Xid (PCI:0000:9b:00): {xid}, pid={process_id}, name={name}, x{text}"
    )
    event = parse_xid(line)
    assert event is not None
    assert (event.xid, event.process_id, event.text) == (xid, process_id, f"x{text}")
    assert event.process_name in (name, "")
