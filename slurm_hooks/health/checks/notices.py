"""What the platform says about the VM's host: it may know of a fault before the driver does."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.health import files, metadata
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict

_FILE = "maintenance-notice"
_KEY = "instance/upcoming-maintenance?alt=json"
_NONE = "none"


class MaintenanceNoticeCheck:
    """Whether the host of this VM has failed and its maintenance is announced."""

    name = "maintenance_notice"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "the platform announces no maintenance for a failure of the host"
    explanation = (
        "Reads upcoming-maintenance from the metadata server in the background and keeps it; a"
        " Prolog looks at what was kept, so that no job waits for the server. Unscheduled"
        " maintenance for a reason that begins with FAILURE_ means REPLACE, any other announced"
        " one is a WARN. A server that does not answer says nothing about the node."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read or recall the notice."""
        is_background = evidence.context is Context.BACKGROUND
        text = _ask(evidence.host) if is_background else files.read_text(_path(evidence.host))
        if not text or text.strip() == _NONE:
            return
        yield from self._judge(text)

    def _judge(self, text: str) -> Iterator[Finding]:
        import json  # only where there is a notice

        try:
            notice = json.loads(text)
        except ValueError:
            yield Finding(self.name, Verdict.UNKNOWN, f"notice not understood: {text[:80]}")
            return
        kind, reasons = _kind_and_reasons(notice)
        if not kind:
            return
        failures = [reason for reason in reasons if reason.startswith("FAILURE_")]
        if kind == "UNSCHEDULED" and failures:
            yield Finding(self.name, Verdict.REPLACE, f"host failure announced: {failures[0]}")
        else:
            yield Finding(self.name, Verdict.WARN, f"{kind.lower()} maintenance announced")


def _kind_and_reasons(notice: object) -> tuple[str, list[str]]:
    if not isinstance(notice, dict):
        return "", []
    kind = notice.get("type", notice.get("maintenanceType", ""))
    told = notice.get("maintenanceReasons", notice.get("maintenance_reasons", []))
    reasons = told if isinstance(told, list) else [told]
    return str(kind), [str(reason) for reason in reasons]


def _ask(host: Host) -> str:
    """The notice as it is now, kept for the next Prolog; empty where nobody answers."""
    answer = metadata.read(host, _KEY)
    if answer is None:
        return ""
    files.write_text(_path(host), f"{answer or _NONE}\n")
    return answer


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
