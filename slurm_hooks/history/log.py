"""One line an event, structured: time in UTC, level, program, message, key=value pairs.

The form is the hook programs' own, so one log file reads from top to bottom.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path

from slurm_hooks.programs.log_line import format_line


class LineFormatter(logging.Formatter):
    """Formats a record made by `log_event`; other records become a message without fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = dict(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1] is not None:
            fields["exception"] = self.formatException(record.exc_info)
        return format_line(record.name, record.levelname, record.getMessage(), **fields).rstrip()


def log_event(logger: logging.Logger, level: int, message: str, **fields: object) -> None:
    """Log one event with its node, job and request names as fields."""
    logger.log(level, "%s", message, extra={"fields": fields})


def configure(level: str, log_file: Path | None) -> None:
    """Send all events to a file, or to stderr where it is None. Raises OSError."""
    handler: logging.Handler
    if log_file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.WatchedFileHandler(log_file, encoding="utf-8")
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # The HTTP libraries log each request at DEBUG and each retry at WARNING; ours say it better.
    for name in ("urllib3", "google"):
        logging.getLogger(name).setLevel(logging.ERROR)
