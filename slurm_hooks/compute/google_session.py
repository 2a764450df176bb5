"""Plain JSON calls to any of Google's services, for what is asked once in a while.

Each service has a library of its own; this needs none of them. Every call has a deadline and is
tried again where that helps. A host that did not answer at all is not asked again, so that a
command which asks for fifty things ends soon without a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slurm_hooks.compute.classify import classify_http
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.retry import RetryPolicy, with_retries
from slurm_hooks.compute.translate import translated_errors, unreadable
from slurm_hooks.compute.transport import FIRST_ERROR_STATUS, load_credentials, require_usable

SERVICE_DISABLED = "SERVICE_DISABLED"
"""The code of the error when the project has not enabled the API that was called."""
POLICY = RetryPolicy(request_timeout_seconds=15.0, attempts=3, total_seconds=30.0)
_NOT_FOUND = 404
_DISABLED = (SERVICE_DISABLED, "accessNotConfigured")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service answers: its own host, or a path before its own at the emulator."""

    host: str
    emulated_prefix: str = ""


class GoogleSession:
    """Calls services. Not for several threads at once.

    An `endpoint` with a scheme stands for all hosts; `credentials` is `default` (Application
    Default Credentials) or `anonymous`. Raises ValueError for others.
    """

    def __init__(
        self, endpoint: str = "", credentials: str = "default", policy: RetryPolicy = POLICY
    ) -> None:
        require_usable(endpoint, credentials)
        self._endpoint = endpoint.rstrip("/")
        self._credentials_name = credentials
        self._policy = policy
        self._credentials: Any = None
        self._session: Any = None
        self._silent: dict[str, ComputeError] = {}

    def get(self, place: Place, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        """GET a path, which begins with a slash. Raises ComputeError, GONE for a 404."""
        return self._call("GET", place, path, query or {}, None)

    def post(self, place: Place, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST to a path that only reads. Raises ComputeError, GONE for a 404."""
        return self._call("POST", place, path, {}, body)

    def service_account(self) -> str:
        """The address of the service account whose credentials these are; empty for others'."""
        with translated_errors():
            email = getattr(self._own_credentials(), "service_account_email", None)
        return str(email) if email and email != "default" else ""

    def access_token(self) -> str:
        """A token of these credentials; empty for anonymous ones. Raises ComputeError."""
        import google.auth.transport.requests

        request: Any = google.auth.transport.requests.Request
        with translated_errors():
            credentials = self._own_credentials()
            if self._credentials_name == "anonymous":
                return ""
            if not credentials.valid:
                credentials.refresh(request())
        return str(credentials.token)

    def _call(
        self,
        method: str,
        place: Place,
        path: str,
        query: dict[str, str],
        body: dict[str, Any] | None,
    ) -> dict[str, Any]:
        base = self._base(place)
        silent = self._silent.get(base)
        if silent is not None:
            raise silent
        try:
            return with_retries(
                self._policy, lambda: self._call_once(method, base + path, query, body)
            )
        except ComputeError as error:
            if error.http_status is None:
                self._silent[base] = error
            raise

    def _call_once(
        self, method: str, url: str, query: dict[str, str], body: dict[str, Any] | None
    ) -> dict[str, Any]:
        with translated_errors():
            response = self._plain_session().request(
                method,
                url,
                params=query,
                json=body,
                timeout=self._policy.request_timeout_seconds,
                allow_redirects=False,
            )
            text = response.content
        if response.status_code >= FIRST_ERROR_STATUS:
            raise error_of(response.status_code, _parsed(response))
        answer = _parsed(response) if text else {}
        if answer is None:
            raise unreadable("the answer is no JSON object")
        return answer

    def _base(self, place: Place) -> str:
        if not self._endpoint:
            return f"https://{place.host}"
        return self._endpoint + place.emulated_prefix

    def _plain_session(self) -> Any:
        if self._session is None:
            import google.auth.transport.requests

            session: Any = google.auth.transport.requests.AuthorizedSession
            self._session = session(self._own_credentials())
        return self._session

    def _own_credentials(self) -> Any:
        if self._credentials is None:
            self._credentials = load_credentials(self._credentials_name)
        return self._credentials


def _parsed(response: Any) -> dict[str, Any] | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def error_of(http_status: int, body: dict[str, Any] | None) -> ComputeError:
    """The error of an answer, in either of the two forms that Google's services have."""
    error = (body or {}).get("error")
    error = error if isinstance(error, dict) else {}
    reason = _reason_of(error)
    message = str(error.get("message") or f"HTTP status {http_status}")
    if reason in _DISABLED:
        return ComputeError(ErrorKind.PERMISSION, SERVICE_DISABLED, message, http_status)
    if http_status == _NOT_FOUND and error:
        return ComputeError(ErrorKind.GONE, reason or "NOT_FOUND", message, http_status)
    code = reason or str(error.get("status") or http_status)
    return ComputeError(classify_http(http_status, reason), code, message, http_status)


def _reason_of(error: dict[str, Any]) -> str:
    """Compute Engine's `errors[].reason`, or that of an ErrorInfo detail."""
    for entry in (*_entries(error.get("errors")), *_entries(error.get("details"))):
        if entry.get("reason"):
            return str(entry["reason"])
    return ""


def _entries(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
