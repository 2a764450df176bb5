"""What the platform says about the VM's host: it may know of a fault before the driver does."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.health import files
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.identity import boot_of
from slurm_hooks.health.model import Context, Finding, Verdict

_FILE = "maintenance-notice"
_KEY = "instance/upcoming-maintenance?alt=json"
_KEPT_SECONDS = 3600
_SHOWN_CHARACTERS = 80


class MaintenanceNoticeCheck:
    """Whether the host of this VM has failed and its maintenance is announced."""

    name = "maintenance_notice"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "the platform announces no maintenance for a failure of the host"
    explanation = (
        "Reads upcoming-maintenance from the metadata server in the background and keeps it; a"
        " Prolog looks at what was kept in the last hour of this boot, so that no job waits for the"
        " server. Unscheduled maintenance for a reason that begins with FAILURE_ means REPLACE, any"
        " other announced one is a WARN, and a notice that nobody can read is UNKNOWN. A server"
        " that does not answer says nothing about the node."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read or recall the notice."""
        is_background = evidence.context is Context.BACKGROUND
        text = _ask(evidence) if is_background else _recall(evidence)
        if text:
            yield from self._judge(text)

    def _judge(self, text: str) -> Iterator[Finding]:
        import json  # only where there is a notice

        try:
            notice = json.loads(text)
            kind, reasons = _kind_and_reasons(notice)
        except (ValueError, RecursionError):
            shown = text[:_SHOWN_CHARACTERS]
            yield Finding(self.name, Verdict.UNKNOWN, f"notice not understood: {shown}")
            return
        if not kind:
            return
        failures = [reason for reason in reasons if reason.startswith("FAILURE_")]
        if kind == "UNSCHEDULED" and failures:
            yield Finding(self.name, Verdict.REPLACE, f"host failure announced: {failures[0]}")
        else:
            yield Finding(self.name, Verdict.WARN, f"{kind.lower()} maintenance announced")


def _kind_and_reasons(notice: object) -> tuple[str, list[str]]:
    """Empty for an empty notice. Raises ValueError for what is none."""
    if not isinstance(notice, dict):
        raise ValueError
    kind = notice.get("type", notice.get("maintenanceType")) or ""
    told = notice.get("maintenanceReasons", notice.get("maintenance_reasons")) or []
    reasons = told if isinstance(told, list) else [told]
    return str(kind), [str(reason) for reason in reasons]


def _ask(evidence: Evidence) -> str:
    """The notice as it is now, kept for the next Prologs; empty where nobody answers."""
    from slurm_hooks.health import metadata

    answer = metadata.read(evidence.host, _KEY)
    if answer is None:
        return ""
    if evidence.may_act:
        head = f"{boot_of(evidence.host)} {evidence.now.timestamp():.0f}"
        files.write_text(_path(evidence), f"{head}\n{answer}")
    return answer


def _recall(evidence: Evidence) -> str:
    """The kept notice, unless it is old or of another boot: that may have been another host."""
    head, _, text = files.read_text(_path(evidence)).partition("\n")
    boot, _, time = head.partition(" ")
    if not time.isdigit() or boot != boot_of(evidence.host):
        return ""
    age = evidence.now.timestamp() - int(time)
    return text.strip() if 0 <= age <= _KEPT_SECONDS else ""


def _path(evidence: Evidence) -> str:
    return f"{evidence.host.state_directory}/{_FILE}"
