"""What a site decides about its rendered files, beside the cluster itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from slurm_hooks.cluster.machine_types import MachineCatalogue, standard_catalogue
from slurm_hooks.settings import DEFAULTS

SlurmVersion = tuple[int, int]
"""Major and minor as numbers: 22.05 is (22, 5)."""

OLDEST_VERSION: SlurmVersion = (22, 5)
MAXIMUM_TIMEOUT_SECONDS = 65_534
"""Slurm keeps timeouts in 16 bits, and from 25.05 on reads 65535 as INFINITE."""

_SAFE_PATH = re.compile(r"/[A-Za-z0-9._/@%+-]*")
_PATHS = (
    "programs_directory",
    "node_programs",
    "gpu_device_prefix",
    "spool_directory",
    "log_file",
    "cluster_config",
)
_TIMEOUTS = (
    "suspend_timeout_seconds",
    "resume_timeout_seconds",
    "prolog_timeout_seconds",
    "epilog_timeout_seconds",
    "health_check_interval_seconds",
)
_SAFE_TEXT = re.compile(r"[^\s#]*")


class RenderError(ValueError):
    """The options, or the cluster with them, cannot be rendered; the text says which and why."""


def parse_slurm_version(text: str) -> SlurmVersion:
    """Read `22.05`, `24.11.5` or `slurm-wlm 24.11.5`. Raises RenderError."""
    match = re.search(r"(?:^|\s)([0-9]{2})\.([0-9]{1,2})(?:\.|\s|-|$)", text.strip())
    if match is None:
        raise RenderError(f"{text.strip()!r} is no Slurm version, write one such as 24.11")
    version = int(match.group(1)), int(match.group(2))
    if version < OLDEST_VERSION:
        raise RenderError("Slurm before 22.05 has no resume file, which the programs need")
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """Options of `render`. Raises RenderError for values that Slurm would misread.

    GPU number I is the device `gpu_device_prefix` with I behind it. slurmd discards a GPU without
    a device (measured on 22.05), so a machine that has none needs stand-ins, such as links to
    /dev/null under another prefix.
    `one_machine_first_port` puts every node on this machine, each slurmd on a port of its own
    from there upward. `munge_socket` is a munged other than the system's. `requeue_delay_seconds`
    is how long a job that lost its nodes waits before it may start again. `configless` puts the
    fragments beside slurm.conf instead of in slurm.conf.d: slurmctld sends no others to
    configless nodes, whose slurmd then does not start (measured on 22.05).
    """

    slurm_version: SlurmVersion
    programs_directory: str = "/usr/bin"
    node_programs_directory: str = ""
    gpu_device_prefix: str = "/dev/nvidia"
    one_machine_first_port: int | None = None
    suspend_time_seconds: int = 300
    suspend_timeout_seconds: int = 180
    resume_timeout_seconds: int = 64_800
    requeue_delay_seconds: int = 30
    scheduler_interval_seconds: int = 10
    default_job_time_seconds: int = 86_400
    prolog_timeout_seconds: int = 120
    epilog_timeout_seconds: int = 300
    health_check_interval_seconds: int = 300
    contain_jobs: bool = True
    configless: bool = False
    munge_socket: str = ""
    spool_directory: str = DEFAULTS["SpoolDir"]
    log_file: str = DEFAULTS["LogFile"]
    api_endpoint: str = DEFAULTS["ApiEndpoint"]
    api_credentials: str = DEFAULTS["ApiCredentials"]
    cluster_config: str = DEFAULTS["ClusterConfig"]
    catalogue: MachineCatalogue = field(default_factory=standard_catalogue)

    def __post_init__(self) -> None:
        if self.slurm_version < OLDEST_VERSION:
            raise RenderError("slurm_version must be 22.05 or newer")
        for name in _PATHS:
            if not _SAFE_PATH.fullmatch(getattr(self, name)):
                raise RenderError(f"{name} must be an absolute path without blanks")
        if self.munge_socket and not _SAFE_PATH.fullmatch(self.munge_socket):
            raise RenderError("munge_socket must be an absolute path without blanks")
        for name in ("api_endpoint", "api_credentials"):
            if not _SAFE_TEXT.fullmatch(getattr(self, name)):
                raise RenderError(f"{name} must hold no blank and no #")
        self._check_seconds()

    @property
    def node_programs(self) -> str:
        """Where compute nodes have our programs."""
        return (self.node_programs_directory or self.programs_directory).rstrip("/") or "/"

    def _check_seconds(self) -> None:
        for name in _TIMEOUTS:
            if not 1 <= getattr(self, name) <= MAXIMUM_TIMEOUT_SECONDS:
                raise RenderError(f"{name} must be 1 to {MAXIMUM_TIMEOUT_SECONDS}")
        if self.suspend_time_seconds < 1:
            raise RenderError("suspend_time_seconds must be at least 1, or idle VMs stay for ever")
        if self.requeue_delay_seconds < 5:
            raise RenderError("requeue_delay_seconds must be at least 5, Slurm's own minimum")
        if self.scheduler_interval_seconds < 1 or self.default_job_time_seconds < 60:
            raise RenderError("scheduler_interval_seconds and default_job_time_seconds are too low")
