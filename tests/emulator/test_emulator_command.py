"""The `slurm-hooks emulator` command tells a user's mistakes in a line, without a traceback."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from slurm_hooks.cli.main import app


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--listen", "0.0.0.0:8080"),
        ("--listen", "127.0.0.1"),
        ("--zone", "mars"),
        ("--capacity", "many"),
        ("--project", "Has Blanks"),
        ("--boot-command", "unclosed 'quote"),
    ],
)
def test_mistake_ends_with_status_two_and_names_the_option_or_value(
    option: str, value: str
) -> None:
    result = CliRunner().invoke(app, ["emulator", option, value])
    assert result.exit_code == 2
    assert "error:" in result.output and "Traceback" not in result.output
    assert option in result.output


@pytest.mark.parametrize("option", ["--log-file", "--serial-directory"])
def test_unwritable_path_is_told(option: str) -> None:
    arguments = ["emulator", "--boot-command", "true", option, "/proc/none/here"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert option in result.output and "Traceback" not in result.output


def test_port_in_use_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(app, ["emulator", "--listen", address])
    assert result.exit_code == 2
    assert address in result.output


def test_help_names_every_option() -> None:
    result = CliRunner().invoke(app, ["emulator", "--help"], terminal_width=200)
    assert result.exit_code == 0
    for option in ("--listen", "--project", "--zone", "--capacity", "--boot-command", "--fast"):
        assert option in result.output


@pytest.mark.parametrize("command", [["emulator"], ["sandbox", "up"], ["sandbox", "demo"]])
def test_package_without_the_sandbox_extra_says_what_to_install(command: list[str]) -> None:
    # A module of None is one that cannot be imported, as where the extra was not installed.
    program = "import sys; sys.modules['uvicorn'] = None\n"
    program += "from slurm_hooks.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert "'.[sandbox]'" in result.stderr and "Traceback" not in result.stderr
