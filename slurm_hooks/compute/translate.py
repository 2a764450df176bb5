"""From what google-cloud-compute and requests raise to ComputeError.

A refused connection, a slow answer and a broken body are each of a different exception family:
none of them is a GoogleAPICallError. Source: tried against google-cloud-compute 1.57 with a
local server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slurm_hooks.compute.classify import classify_http
from slurm_hooks.compute.errors import ComputeError, ErrorKind

CONNECTION_FAILED = "connectionFailed"
TIMED_OUT = "timedOut"
UNREADABLE_ANSWER = "unreadableAnswer"
NO_CREDENTIALS = "noCredentials"
BAD_ENDPOINT = "badEndpoint"


def unreadable(message: str) -> ComputeError:
    """The error for an answer that came, and was good for nothing."""
    return ComputeError(ErrorKind.TRANSIENT, UNREADABLE_ANSWER, message, 200)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn every failure of a call inside the block into ComputeError."""
    import google.api_core.exceptions
    import google.auth.exceptions
    import requests.exceptions
    from google.protobuf import json_format

    try:
        yield
    except google.api_core.exceptions.GoogleAPICallError as error:
        raise _of_answer(error) from error
    except google.auth.exceptions.GoogleAuthError as error:
        raise _of_credentials(error) from error
    except requests.exceptions.RequestException as error:
        raise _of_network(error) from error
    except (json_format.ParseError, UnicodeDecodeError) as error:
        raise unreadable(str(error)) from error
    except AttributeError as error:
        # google.api_core trips over an error answer whose JSON is not of the usual shape.
        raise unreadable(str(error)) from error


def _of_answer(error: Any) -> ComputeError:
    """`error.errors` are the answer's own entries; its `message` starts with method and URL."""
    status = int(error.code) if error.code is not None else None
    entries = [entry for entry in error.errors or () if isinstance(entry, dict)]
    first = entries[0] if entries else {}
    reason = str(first.get("reason") or "")
    message = str(first.get("message") or error.message)
    if status is None:
        return ComputeError(ErrorKind.TRANSIENT, reason or UNREADABLE_ANSWER, message)
    return ComputeError(classify_http(status, reason), reason or str(status), message, status)


def _of_credentials(error: Any) -> ComputeError:
    """A metadata or token server that stumbles is worth another try, missing rights are not."""
    kind = ErrorKind.TRANSIENT if getattr(error, "retryable", False) else ErrorKind.PERMISSION
    return ComputeError(kind, NO_CREDENTIALS, str(error))


def _of_network(error: Any) -> ComputeError:
    import requests.exceptions as names

    if isinstance(error, names.InvalidURL | names.MissingSchema | names.InvalidSchema):
        return ComputeError(ErrorKind.CONFIG, BAD_ENDPOINT, str(error))
    code = TIMED_OUT if isinstance(error, names.Timeout) else CONNECTION_FAILED
    return ComputeError(ErrorKind.TRANSIENT, code, str(error))
