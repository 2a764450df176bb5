"""The pretended driver library itself: how it is built, that it hangs, that nothing crashes it."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pynvml
import pytest

from slurm_hooks.sandbox.gpu import build
from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME, DriverLibraryError, build_driver_library
from slurm_hooks.sandbox.gpu.state import ATTACH, STATE_NAME, Hang
from tests.unit.health.node_roots import NodeRoot
from tests.waiting import wait_until

PATIENCE_SECONDS = 30.0
HANG_SECONDS = 0.5
SOURCES = Path(build.__file__).parent

PROBE = """
import sys
from slurm_hooks.health.driver.model import DriverError
from slurm_hooks.health.driver.nvml import NvmlDriver
from slurm_hooks.health.driver.model import all_gpus

questions = [name for name in dir(NvmlDriver) if name[0] != "_" and name not in
             ("open", "close", "version", "count", "gpu")]
driver = NvmlDriver(sys.argv[1])
print("asking", flush=True)
try:
    driver.open()
    for gpu in all_gpus(driver):
        for name in questions:
            try:
                getattr(driver, name)(gpu)
            except DriverError:
                pass
except DriverError as error:
    print(error, flush=True)
print("answered", flush=True)
"""


@contextmanager
def probe(node: NodeRoot) -> Iterator[subprocess.Popen[str]]:
    """A process that asks the node's driver everything, killed in the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROBE, node.host().driver_library],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "asking\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)


def is_pending(process: subprocess.Popen[str], number: int, which: str) -> bool:
    """Whether a set of signals in the process's status has the signal."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    masks = re.findall(rf"^{which}:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def test_probe_of_a_healthy_node_comes_to_its_end(node: NodeRoot) -> None:
    with probe(node) as process:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert (process.returncode, output) == (0, "answered\n")


@pytest.mark.parametrize(
    "call", ["nvmlInitWithFlags", ATTACH, "nvmlDeviceGetCount_v2", "nvmlDeviceGetFieldValues"]
)
def test_hanging_call_never_returns_and_dies_of_a_signal(node: NodeRoot, call: str) -> None:
    node.change_driver(hangs={call: Hang.KILLABLE})

    with probe(node) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(HANG_SECONDS)
        process.terminate()

        assert process.wait(PATIENCE_SECONDS) == -signal.SIGTERM


def test_stubborn_hang_leaves_signals_pending(node: NodeRoot) -> None:
    node.change_gpu(4, hangs={"nvmlDeviceGetRemappedRows": Hang.STUBBORN})

    with probe(node) as process:
        wait_until(
            "the library to block signals",
            lambda: is_pending(process, signal.SIGTERM, "SigBlk"),
            PATIENCE_SECONDS,
        )
        process.terminate()
        wait_until(
            "the signal to be pending",
            lambda: is_pending(process, signal.SIGTERM, "ShdPnd"),
            PATIENCE_SECONDS,
        )
        assert process.poll() is None
        process.kill()

        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_binding_finds_a_preloaded_library_by_its_name(node: NodeRoot) -> None:
    """As it comes: the sandbox may load the library by name, through LD_LIBRARY_PATH or before."""
    script = (
        "import ctypes, sys, pynvml\n"
        "ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)\n"
        "pynvml.nvmlInit()\n"
        "print(pynvml.nvmlDeviceGetCount())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, node.host().driver_library],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )

    assert done.stdout == "8\n"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_state_file_crashes_nothing(node: NodeRoot, seed: int) -> None:
    chance = random.Random(seed)
    file = node.path("usr/lib", STATE_NAME)
    text = bytearray(file.read_bytes())
    for _ in range(len(text) // 50):
        text[chance.randrange(200, len(text))] = chance.choice(b"\0\n=,.:-9\xff")
    file.write_bytes(text)

    with probe(node) as process:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 0
    assert output.endswith("answered\n")


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 5000, b"=" * 5000, b"\n" * 5000, b"driver.loaded=1", b"\xff" * 2_000_000],
)
def test_file_that_is_no_state_file_crashes_nothing(node: NodeRoot, content: bytes) -> None:
    node.path("usr/lib", STATE_NAME).write_bytes(content)

    with probe(node) as process:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 0
    assert "DRIVER_NOT_LOADED" in output or "NOT_SUPPORTED" in output


def test_library_has_no_call_that_the_binding_does_not_know() -> None:
    source = "".join(file.read_text() for file in SOURCES.glob("*.c"))
    exported = set(re.findall(r"^EXPORTED [^(]*?\b(nvml\w+)\(", source, re.MULTILINE))
    known = set(
        re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', Path(pynvml.__file__).read_text())
    )

    assert len(exported) > 30
    assert exported - known == {"nvmlInit_v2"}, "nvmlInit_v2 is for other programs than ours"


def test_missing_compiler_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_COMPILER_DIRECTORIES", str(tmp_path))

    with pytest.raises(DriverLibraryError, match="install gcc and libc6-dev"):
        build_driver_library(tmp_path / LIBRARY_NAME)


def test_failing_compiler_is_said_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_OPTIONS", ("-include", "no-such-header.h"))

    with pytest.raises(DriverLibraryError, match=r"no-such-header\.h.*install gcc"):
        build_driver_library(tmp_path / LIBRARY_NAME)


def test_library_is_compiled_once_for_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_driver_library(tmp_path / "a" / LIBRARY_NAME, tmp_path / "cache")
    monkeypatch.setattr(build, "_compile", None)

    second = build_driver_library(tmp_path / "b" / LIBRARY_NAME, tmp_path / "cache")

    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_ino != second.stat().st_ino
