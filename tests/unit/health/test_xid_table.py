"""Every row of the Xid table of the facts (gpu-health, 2.3), written down here a second time."""

from __future__ import annotations

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.health.xids.nvlink5 import parse_nvlink_report
from slurm_hooks.health.xids.table import (
    XidClass,
    explanation_of_xid,
    verdict_of_xid,
    xid_table,
)

OK, WARN, REQUEUE = Verdict.OK, Verdict.WARN, Verdict.REQUEUE
RESET, REBOOT, REPLACE, MANUAL = Verdict.RESET, Verdict.REBOOT, Verdict.REPLACE, Verdict.MANUAL

ROWS: list[tuple[str, str, str, Verdict]] = [
    (
        "8 11 13 25 31 32 39-41 60 68-72 75-77 80 82-86 88 89 96-105 126-135 139",
        "application",
        "RESTART_APP",
        OK,
    ),
    ("43 141", "application", "IGNORE", OK),
    ("45", "application", "WORKFLOW_XID_45", OK),
    ("142", "application", "CONTACT_SUPPORT", WARN),
    ("14 106 107", "information", "IGNORE", OK),
    ("154", "information", "FOLLOW_OTHER_XID", WARN),
    ("162-165", "information", "NONE", OK),
    ("37 38 44 66 67 152 153", "driver", "IGNORE", OK),
    ("93", "driver", "IGNORE", WARN),
    ("46 62 109 110 119 120 143 158", "driver", "RESET_GPU", RESET),
    ("78", "driver", "UPDATE_SWFW", MANUAL),
    ("151", "driver", "RESTART_VM", REBOOT),
    ("169", "driver", "NONE", RESET),
    ("48", "memory", "WORKFLOW_XID_48", RESET),
    ("63", "memory", "IGNORE", WARN),
    ("64", "memory", "RESET_GPU", REPLACE),
    ("92", "memory", "IGNORE", WARN),
    ("94", "memory", "RESTART_APP", REQUEUE),
    ("95 140 156", "memory", "RESET_GPU", RESET),
    ("157 160 161", "memory", "IGNORE", WARN),
    ("168", "memory", "NONE", WARN),
    ("171 172", "memory", "NONE", RESET),
    ("54", "power", "CHECK_MECHANICALS", REPLACE),
    ("79", "bus", "RESTART_BM", REBOOT),
    ("121", "bus", "IGNORE", WARN),
    ("167", "bus", "NONE", REBOOT),
    ("74", "fabric", "WORKFLOW_NVLINK_ERR", RESET),
    ("108 137", "fabric", "IGNORE", OK),
    ("136 155", "fabric", "RESET_GPU", RESET),
    ("159", "fabric", "CHECK_UVM", WARN),
    ("166 170", "fabric", "NONE", WARN),
    (
        "1-7 9 10 12 15-24 26-30 33-36 42 47 49-53 55-59 61 65 73 81 87 90 91 111-118 122-125 138",
        "unused",
        "CONTACT_SUPPORT",
        WARN,
    ),
]


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


CASES = [
    pytest.param(xid, kind, action, verdict, id=str(xid))
    for words, kind, action, verdict in ROWS
    for xid in numbers(words)
]


@pytest.mark.parametrize(("xid", "kind", "action", "verdict"), CASES)
def test_row_of_the_table(xid: int, kind: str, action: str, verdict: Verdict) -> None:
    row = xid_table()[xid]
    assert (row.kind, row.action) == (XidClass(kind), action)
    assert verdict_of_xid(xid, "", is_repeated=False) is verdict


def test_table_has_the_rows_of_the_facts_and_no_other() -> None:
    listed = [xid for words, *_ in ROWS for xid in numbers(words)]
    assert sorted([*listed, *range(144, 151)]) == sorted(xid_table())
    assert len(xid_table()) == 172


def nvlink(unit: str, severity: str) -> str:
    return f"{unit} {severity} XC0 i0 Link 03 (0x021465c6 0x00000000 0x00000000)"


@pytest.mark.parametrize(
    ("xid", "unit", "fatal", "nonfatal"),
    [
        (144, "SAW_MVB", RESET, OK),
        (145, "RLW_RXPIPE", RESET, OK),
        (146, "TLW_RX/TLW_RX_PIPE0", RESET, OK),
        (147, "TREX", OK, OK),
        (148, "NVLPW_CTRL/NVLPW", OK, OK),
        (149, "NETIR_LINK_EVT", RESET, OK),
        (149, "NETIR_BER_EVENT", OK, OK),
        (150, "MSE_WATCHDOG", RESET, RESET),
    ],
)
def test_nvlink_5_xid_is_judged_by_its_severity(
    xid: int, unit: str, fatal: Verdict, nonfatal: Verdict
) -> None:
    assert xid_table()[xid].action == "WORKFLOW_NVLINK5_ERR"
    assert verdict_of_xid(xid, nvlink(unit, "Fatal"), is_repeated=False) is fatal
    assert verdict_of_xid(xid, nvlink(unit, "Nonfatal"), is_repeated=False) is nonfatal


def test_nvlink_5_xid_in_an_unknown_form_is_a_warning() -> None:
    assert verdict_of_xid(149, "something new", is_repeated=False) is WARN


def test_nvlink_report_has_unit_link_and_sub_code() -> None:
    report = parse_nvlink_report("NETIR_LINK_EVT  Fatal   XC0 i0 Link 03 (0x021465c6 0x00000000)")
    assert report is not None
    assert (report.unit, report.is_fatal, report.link) == ("NETIR_LINK_EVT", True, 3)
    assert report.sub_code == 33


def test_nvlink_report_without_a_link_has_none() -> None:
    report = parse_nvlink_report("NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)")
    assert report is not None
    assert (report.link, report.sub_code) == (None, 0)


@pytest.mark.parametrize("xid", numbers(ROWS[-1][0]))
def test_xid_out_of_use_is_for_a_person_when_it_comes_again(xid: int) -> None:
    assert verdict_of_xid(xid, "", is_repeated=True) is MANUAL


@pytest.mark.parametrize("xid", [13, 94, 79, 200])
def test_other_xids_are_the_same_when_they_come_again(xid: int) -> None:
    assert verdict_of_xid(xid, "", True) is verdict_of_xid(xid, "", False)


@pytest.mark.parametrize("xid", [0, 173, 194, 948])
def test_xid_that_the_table_lacks_is_a_warning(xid: int) -> None:
    assert verdict_of_xid(xid, "", is_repeated=True) is WARN
    assert "not in the table" in explanation_of_xid(xid)


def test_every_row_is_explained_in_few_plain_words() -> None:
    for xid in xid_table():
        assert 10 < len(explanation_of_xid(xid)) < 100
