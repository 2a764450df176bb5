"""The site's own scripts: in order, bounded, and a failing one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.site_scripts import run_site_scripts


class _Site:
    """A node with scripts of its site."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = Host(root=str(root), name="n1")

    def has(self, name: str, text: str, mode: int = 0o755, context: str = "prolog") -> None:
        directory = self.root / "etc" / "slurm-hooks" / f"{context}.d"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
        (directory / name).chmod(mode)

    def run(
        self,
        environment: dict[str, str] | None = None,
        seconds: float = 5.0,
        context: Context = Context.PROLOG,
    ) -> list[Finding]:
        return run_site_scripts(context, self.host, environment or {}, seconds)


@pytest.fixture
def site(tmp_path: Path) -> _Site:
    return _Site(tmp_path)


def test_scripts_run_in_the_order_of_their_names(site: _Site) -> None:
    note = site.root / "note"
    site.has("10.sh", f"echo ten >> {note}")
    site.has("05.sh", f"echo five >> {note}")

    assert site.run() == []
    assert note.read_text() == "five\nten\n"


def test_the_scripts_of_an_epilog_are_others(site: _Site) -> None:
    site.has("05.sh", "exit 1")
    site.has("05.sh", "exit 0", context="epilog")

    assert site.run(context=Context.EPILOG) == []


def test_a_failing_script_is_named_with_its_last_words_and_ends_the_row(site: _Site) -> None:
    note = site.root / "note"
    site.has("05-mount.sh", "echo trying; echo 'no such export' >&2; exit 7")
    site.has("10.sh", f"echo ten >> {note}")

    (finding,) = site.run()

    assert finding.verdict is Verdict.MANUAL
    assert finding.detail == "05-mount.sh exit 7: no such export"
    assert not note.exists()


def test_a_script_that_does_not_end_is_left_behind(site: _Site) -> None:
    site.has("05.sh", "sleep 600")

    (finding,) = site.run(seconds=0.3)

    assert finding.detail == "05.sh did not end in 0.3 s"


def test_a_script_that_others_may_write_is_not_run(site: _Site) -> None:
    note = site.root / "note"
    site.has("05.sh", f"echo run >> {note}", mode=0o777)

    (finding,) = site.run()

    assert "writable" in finding.detail
    assert not note.exists()


def test_a_script_sees_slurms_variables_and_a_path_and_nothing_else(site: _Site) -> None:
    note = site.root / "note"
    site.has("05.sh", f"env > {note}; true")
    site.run({"SLURM_JOB_ID": "7", "LD_PRELOAD": "/tmp/evil.so", "BASH_ENV": "/tmp/evil"})

    names = {line.partition("=")[0] for line in note.read_text().splitlines()}

    assert {"SLURM_JOB_ID", "PATH"} <= names
    assert names <= {"SLURM_JOB_ID", "PATH", "LANG", "PWD", "SHLVL", "_"}


def test_a_site_without_scripts_is_fine(site: _Site) -> None:
    assert site.run() == []
