"""Build the pretended driver library from its C sources, once for each version of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LIBRARY_NAME = "libnvidia-ml.so.1"
"""The name by which NVIDIA's own binding asks the system's loader for the driver library."""

_COMPILER_DIRECTORIES = "/usr/local/bin:/usr/bin:/bin"
_COMPILE_SECONDS = 60.0
_OPTIONS = (
    *("-std=c11", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden"),
    f"-Wl,-soname,{LIBRARY_NAME}",
)


class DriverLibraryError(Exception):
    """The driver library cannot be built; the text says why, and what to do, in a sentence."""


def build_driver_library(target: Path, cache: Path | None = None) -> Path:
    """Put the library at `target`, a copy of its own, and return that path.

    It must be a file of its own, no link: the loader takes two names of one file for one library,
    and each finds its state beside itself. `cache` keeps what was compiled; without one it is
    compiled again. Raises DriverLibraryError without a working gcc.
    """
    sources = sorted(Path(__file__).parent.glob("*.c"))
    if cache is None:
        with tempfile.TemporaryDirectory() as scratch:
            return _install(_compile(sources, Path(scratch) / LIBRARY_NAME), target)
    compiled = cache / f"{_digest()}.so"
    if not compiled.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _compile(sources, Path(scratch) / LIBRARY_NAME).replace(compiled)
    return _install(compiled, target)


def _digest() -> str:
    digest = hashlib.sha256(" ".join(_OPTIONS).encode())
    for source in sorted(Path(__file__).parent.glob("*.[ch]")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:32]


def _install(compiled: Path, target: Path) -> Path:
    """Copy beside the target and rename, so that a loaded library is never written into."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, path = tempfile.mkstemp(dir=target.parent)
    os.close(descriptor)
    shutil.copyfile(compiled, path)
    Path(path).chmod(0o755)
    return Path(path).replace(target)


def _compile(sources: list[Path], library: Path) -> Path:
    compiler = shutil.which("gcc", path=_COMPILER_DIRECTORIES)
    if compiler is None:
        raise DriverLibraryError(_advice("gcc is not installed"))
    command = [compiler, *_OPTIONS, "-o", str(library), *map(str, sources)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMPILE_SECONDS,
            check=False,
            env={"PATH": _COMPILER_DIRECTORIES, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DriverLibraryError(_advice(str(error))) from error
    if done.returncode != 0:
        raise DriverLibraryError(_advice(done.stderr.strip().partition("\n")[0]))
    return library


def _advice(reason: str) -> str:
    return f"the pretended driver library cannot be built: {reason}; install gcc and libc6-dev"
