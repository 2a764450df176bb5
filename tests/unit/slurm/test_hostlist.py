"""Hostlists are read and written as Slurm does, measured on three of its versions."""

from __future__ import annotations

import time

import pytest

from slurm_hooks.slurm.hostlist import HostlistError, collapse, expand
from tests.shared_data import shared_file

REFUSED_ALTHOUGH_SLURM_ANSWERS = {
    "n1-2]": "unbalanced bracket",
    "]": "unbalanced bracket",
    "n[[1-2]": "unbalanced bracket",
    "n]1[2]": "unbalanced bracket",
    "n[1-]": "Slurm forgets the open end",
    "n[+1]": "Slurm pads by the sign",
    "n[1, 3]": "Slurm pads by the blank",
    "n[1 - 2]": "Slurm pads by the blank",
    "n[99999999999999999999]": "Slurm saturates at 2^64-1",
    "n[18446744073709551615]": "the number at which Slurm's ranges crash it",
}
REFUSED_SINCE_VERSIONS_DISAGREE = {
    "n[1-2": "22.05 returns a wrong name",
    "n[1-2]]": "only newer ones accept it",
    "a[[1-2]]": "only newer ones accept it",
    "[": "22.05 is silent",
    "n[1-2],n[": "22.05 returns a wrong name",
    "n[1-2]x[": "22.05 returns a wrong name",
    "a[1-300]b[1-2": "22.05 returns a wrong name",
    "n{1-2}": "newer ones ask the controller",
    "n[18446744073709551614-18446744073709551615]": "crashes all of them",
}
READ_AS_THE_NEWER_VERSIONS = {
    "n[1-3]x",
    "a[1-2]b[3-4]c",
    "rack[0-1]node[0-1].example",
    "n[1-2]:4",
    "n[1-2].example.com",
    "n[1-2]-ib0",
    "a[1-2]b",
}


def measured_rows() -> list[list[str]]:
    lines = shared_file("facts/hostlists.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines[1:]]


def outcome(text: str) -> str:
    try:
        return " ".join(expand(text))
    except HostlistError:
        return "ERROR"


def test_every_measured_hostlist_is_read_as_slurm_does_but_for_the_listed_ones() -> None:
    different = REFUSED_ALTHOUGH_SLURM_ANSWERS.keys() | REFUSED_SINCE_VERSIONS_DISAGREE.keys()
    rows = measured_rows()
    assert len(rows) > 100
    for text, oldest, middle, newest in rows:
        if text in different:
            assert outcome(text) == "ERROR", text
        elif text in READ_AS_THE_NEWER_VERSIONS:
            assert (oldest, outcome(text)) == ("ERROR", middle), text
            assert middle == newest, text
        else:
            assert [outcome(text)] * 3 == [oldest, middle, newest], text


def test_lists_of_differences_name_only_real_differences() -> None:
    rows = {row[0]: row[1:] for row in measured_rows()}
    for text in REFUSED_ALTHOUGH_SLURM_ANSWERS:
        assert "ERROR" not in rows[text]
    for text in REFUSED_SINCE_VERSIONS_DISAGREE:
        assert len(set(rows[text])) > 1 or "CRASH" in rows[text]


@pytest.mark.parametrize(
    ("names", "hostlist"),
    [
        (["n3", "n1", "n2"], "n[3,1-2]"),
        (["n1", "n1", "n2"], "n[1,1-2]"),
        (["n1", "n01", "n2", "n02"], "n[1,01,2,02]"),
        (["n09", "n10", "n11"], "n[09-11]"),
        (["n9", "n10"], "n[9-10]"),
        (["n001", "n1000"], "n[001,1000]"),
        (["a1b3", "a1b4", "a2b3", "a2b4"], "a1b[3-4],a2b[3-4]"),
        (["n1x", "n2x"], "n1x,n2x"),
        (["n1"], "n1"),
        (["n", "n1", "m"], "n,n1,m"),
        ([], ""),
    ],
)
def test_names_fold_as_in_show_hostlist(names: list[str], hostlist: str) -> None:
    assert collapse(names) == hostlist
    assert expand(hostlist) == names


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1]", "a{1}", "a\nb"])
def test_name_that_no_hostlist_can_hold_is_refused(name: str) -> None:
    with pytest.raises(HostlistError):
        collapse(["n1", name])


@pytest.mark.parametrize("text", ["a[1-65536]b[1-65536]", "a[1-60000]b[1-60000]c[1-60000]"])
def test_short_text_that_means_too_many_names_is_refused(text: str) -> None:
    with pytest.raises(HostlistError, match="more than"):
        expand(text)


def test_largest_range_works() -> None:
    names = expand("n[1-65536]")
    assert len(names) == 65536
    assert collapse(names) == "n[1-65536]"
    assert collapse([*names, "n65537"]) == "n[1-65536,65537]"


def test_ten_thousand_names_take_less_than_a_tenth_of_a_second() -> None:
    names = [f"cluster-pool-{index}" for index in range(10_000)]
    start = time.process_time()
    assert expand(collapse(names)) == names
    assert time.process_time() - start < 0.1
