"""slurm-hooks-health: the checks for a person on the node.

Standard library only, like all that is installed on nodes.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from slurm_hooks.health import hung_probe
from slurm_hooks.health.checks.base import Check
from slurm_hooks.health.cleared import write_cleared
from slurm_hooks.health.host import METADATA_URL, Host
from slurm_hooks.health.model import Context, Finding
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.policy_file import PolicyError, load_policy
from slurm_hooks.health.registry import all_checks
from slurm_hooks.health.report import Report
from slurm_hooks.health.run import run_health

_DESCRIPTION = """\
Checks this node as slurmd's Prolog, Epilog and HealthCheckProgram do, and shows what they see.
Nothing is drained, mended or ended from here. Policy: /etc/slurm-hooks/health.yaml."""
_GOOD, _NOT_WELL, _MISTAKE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `slurm-hooks-health`. The exit status: 0 well, 1 not well, 2 a mistake."""
    options = _parser().parse_args(arguments)
    host = Host(root=options.root, metadata_url=options.metadata_url.rstrip("/"))
    try:
        status: int = options.work(host, options)
    except PolicyError as error:
        print(error, file=sys.stderr)
        return _MISTAKE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _GOOD
    except OSError as error:
        print(f"slurm-hooks-health: {error}", file=sys.stderr)
        return _MISTAKE
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--root", default="/", help="look at a node below this directory")
    common.add_argument("--metadata-url", default=METADATA_URL, help=argparse.SUPPRESS)
    common.add_argument("--json", action="store_true", help="answer in JSON, for scripts")
    parser = argparse.ArgumentParser(prog="slurm-hooks-health", description=_DESCRIPTION)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        parents=[common],
        help="run the checks and show the verdict",
        description=_DESCRIPTION,
    )
    run.add_argument(
        "--context",
        choices=[str(context) for context in Context],
        default=str(Context.BACKGROUND),
        help="whose checks to run (default: %(default)s)",
    )
    run.add_argument("checks", nargs="*", metavar="CHECK", help="only these checks")
    run.set_defaults(work=_run)
    explain = commands.add_parser(
        "explain", parents=[common], help="say what a check reads, when it fails and what to do"
    )
    explain.add_argument("check", metavar="CHECK")
    explain.set_defaults(work=_explain)
    listing = commands.add_parser("list", parents=[common], help="list all checks and switches")
    listing.set_defaults(work=_list)
    clear = commands.add_parser(
        "clear",
        parents=[common],
        help="after a repair by hand: what the kernel logged so far is dealt with",
    )
    clear.add_argument("--by", default="", help="your name (default: the login's)")
    clear.set_defaults(work=_clear)
    return parser


def _run(host: Host, options: argparse.Namespace) -> int:
    unknown = _unknown(options.checks)
    if unknown:
        return _no_such_check(unknown)
    report = run_health(
        Context(options.context), host, load_policy(host), only=options.checks, may_act=False
    )
    if options.json:
        _print_json(_report_as_json(report))
    else:
        for finding in report.findings:
            print(_finding_as_text(finding, is_acting=finding in report.acting))
        print(f"{report.verdict} in {report.seconds:.1f} s")
    return _NOT_WELL if report.verdict.fails_job else _GOOD


def _explain(host: Host, options: argparse.Namespace) -> int:
    if _unknown([options.check]):
        return _no_such_check(options.check)
    check = next(check for check in all_checks() if check.name == options.check)
    if options.json:
        _print_json({**_check_as_json(check, load_policy(host)), "explanation": check.explanation})
    else:
        print(f"{check.name}: {check.summary}\nRuns in: {', '.join(_contexts(check))}\n")
        print(check.explanation)
    return _GOOD


def _list(host: Host, options: argparse.Namespace) -> int:
    policy = load_policy(host)
    rows = [_check_as_json(check, policy) for check in all_checks()]
    if options.json:
        _print_json(rows)
        return _GOOD
    for row in rows:
        contexts = ",".join(str(context) for context in _as_list(row["contexts"]))
        print(f"{row['name']:<20} {row['switch']:<8} {contexts:<28} {row['summary']}")
    return _GOOD


def _clear(host: Host, options: argparse.Namespace) -> int:
    by = options.by or os.environ.get("SUDO_USER") or _login()
    now = datetime.now(UTC)
    if not write_cleared(host, now, by):
        print(f"cannot write below {host.state_directory}: are you root?", file=sys.stderr)
        return _MISTAKE
    hung_probe.forget_if_gone(host)
    if options.json:
        _print_json({"cleared": now.isoformat(), "by": by})
    else:
        print(f"What was logged until {now:%Y-%m-%d %H:%M:%S} UTC counts no more. To give the node")
        print("back to Slurm: scontrol update nodename=NODE state=resume")
    return _GOOD


def _login() -> str:
    try:
        return getpass.getuser()
    except KeyError:  # the number has no name here
        return str(os.getuid())


def _unknown(names: Sequence[str]) -> str:
    known = {check.name for check in all_checks()}
    return next((name for name in names if name not in known), "")


def _no_such_check(name: str) -> int:
    import difflib

    near = difflib.get_close_matches(name, [check.name for check in all_checks()], 1)
    guess = f" Did you mean {near[0]}?" if near else ""
    print(f"There is no check {name}.{guess} `slurm-hooks-health list` names all.", file=sys.stderr)
    return _MISTAKE


def _contexts(check: Check) -> list[str]:
    return [str(context) for context in Context if context in check.contexts]


def _check_as_json(check: Check, policy: HealthPolicy) -> dict[str, object]:
    observed = policy.observe or check.name in policy.observed_checks
    switch = "off" if check.name in policy.disabled_checks else "observe" if observed else "on"
    return {
        "name": check.name,
        "switch": switch,
        "contexts": _contexts(check),
        "summary": check.summary,
    }


def _report_as_json(report: Report) -> dict[str, object]:
    return {
        "verdict": report.verdict,
        "context": report.context,
        "seconds": round(report.seconds, 3),
        "hung_check": report.hung_check or None,
        "findings": [
            {
                "check": finding.check,
                "verdict": finding.verdict,
                "detail": finding.detail,
                "gpu": finding.gpu,
                "xid": finding.xid,
                "acting": finding in report.acting,
            }
            for finding in report.findings
        ],
    }


def _finding_as_text(finding: Finding, *, is_acting: bool) -> str:
    gpu = f" gpu {finding.gpu}" if finding.gpu is not None else ""
    note = "" if is_acting else " (observed only)"
    return f"{finding.verdict:<8} {finding.check}{gpu}: {finding.detail}{note}"


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


if __name__ == "__main__":
    sys.exit(main())
