"""The settings of one controller: where to find the cluster file, the spool and the API.

A hook program gets SLURM_CONF and nothing else from Slurm (no arguments before 26.05), so the
settings are found from it alone: `slurm-hooks.conf` in SLURM_CONF's directory, else in
/etc/slurm-hooks. The form is slurm.conf's own, `Key=Value` a line and `#` for comments. Read by
hook programs too: standard library only, and few modules of it.
"""

from __future__ import annotations

import os

FILE_NAME = "slurm-hooks.conf"
SYSTEM_DIRECTORY = "/etc/slurm-hooks"
DEFAULT_SLURM_CONF = "/etc/slurm/slurm.conf"

DEFAULTS = {
    "ClusterConfig": "/etc/slurm-hooks/cluster_config.json",
    "ClusterId": "",
    "Project": "",
    "SpoolDir": "/var/spool/slurm-hooks",
    "LogFile": "/var/log/slurm-hooks/slurm-hooks.log",
    "LogLevel": "INFO",
    "ApiEndpoint": "",
    "ApiCredentials": "default",
    "SlurmBinDir": "",
    "PassIntervalSeconds": "10",
    "MetricsListen": "",
    "RenderOptions": "",
    "RestartSlurmctld": "systemctl restart slurmctld",
}
"""Every key with its default. `ApiCredentials` is `default` (Application Default Credentials)
or `anonymous` (the emulator). An empty `ApiEndpoint` is the public service, an empty
`MetricsListen` serves no metrics, else it is `HOST:PORT`. `RenderOptions` are those of render that
are not the default, as `name=value` with blanks between; `slurm-hooks apply` renders with them, and
restarts slurmctld by the command `RestartSlurmctld`, which no shell reads."""


class SettingsError(Exception):
    """The settings file is missing or wrong; the text names file and line and says what to do."""


def find(slurm_conf: str | None) -> str:
    """The settings file that belongs to a slurm.conf. Raises SettingsError if there is none."""
    beside = os.path.join(os.path.dirname(slurm_conf or DEFAULT_SLURM_CONF), FILE_NAME)
    system = os.path.join(SYSTEM_DIRECTORY, FILE_NAME)
    for path in (beside, system):
        if os.path.exists(path):
            return path
    raise SettingsError(f"no settings: create {beside} or {system} (see slurm-hooks render)")


def read(path: str) -> dict[str, str]:
    """Read a settings file over the defaults. Raises SettingsError naming the line at fault."""
    values = dict(DEFAULTS)
    known = {key.lower(): key for key in DEFAULTS}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        key, equals, value = text.partition("=")
        name = known.get(key.strip().lower())
        if not equals or name is None:
            raise SettingsError(
                f"{path}:{number}: expected Key=Value, Key one of {', '.join(DEFAULTS)}"
            )
        values[name] = value.strip()
    return values
