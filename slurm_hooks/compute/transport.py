"""The clients of google-cloud-compute and the one way in which they are called.

Invariants: every client speaks to the configured endpoint and no other; no call is made without
a deadline; the library's own retries and its operation futures are never used. The futures would
poll through a client of their own that ignores `api_endpoint`, which is why only `*_unary`
methods may start an operation.

Importing the library costs about 1.1 s and 150 MiB, so it happens at the first call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.retry import RetryPolicy, with_retries
from slurm_hooks.compute.translate import translated_errors, unreadable

CREDENTIALS = ("default", "anonymous")
FIRST_ERROR_STATUS = 400
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
COMPLETE_WARNINGS = frozenset({"", "NO_RESULTS_ON_PAGE"})
"""Warnings in a list that leave it complete; any other may mean that something is missing."""


class Transport:
    """Calls methods of the v1 API by service and method name.

    `api_endpoint` has a scheme, such as `http://127.0.0.1:8080`; empty is the public service.
    `credentials` is `default` (Application Default Credentials) or `anonymous`.
    Not for several threads at once. Raises ValueError for other values.
    """

    def __init__(self, api_endpoint: str, credentials: str, policy: RetryPolicy) -> None:
        require_usable(api_endpoint, credentials)
        self._api_endpoint = api_endpoint.rstrip("/")
        self._credentials_name = credentials
        self._policy = policy
        self._credentials: Any = None
        self._services: dict[str, Any] = {}
        self._session: Any = None

    def call(
        self, service: str, method: str, request: dict[str, Any], *, may_be_empty: bool = False
    ) -> Any:
        """Call a method, again if that is safe, and give its answer as a protobuf message.

        `service` is a client class of the library. A request that changes something must hold
        a `request_id`. Raises ComputeError.
        """
        return with_retries(
            self._policy, lambda: self._call_once(service, method, request, may_be_empty)
        )

    def _call_once(
        self, service: str, method: str, request: dict[str, Any], may_be_empty: bool
    ) -> Any:
        with translated_errors():
            client = self._service(service)
        bound = getattr(client, method)
        with translated_errors():
            answer = bound(
                request=request, retry=None, timeout=self._policy.request_timeout_seconds
            )
        if hasattr(answer, "pages"):
            answer = next(iter(answer.pages))
        message = type(answer).pb(answer)
        return message if may_be_empty else require_content(message)

    def pages(
        self, service: str, method: str, request: dict[str, Any], *, may_be_empty: bool = False
    ) -> Iterator[Any]:
        """All pages of a list, each retried on its own. Raises ComputeError.

        A page that says that a part of the answer is missing is an error, too. `may_be_empty` is
        for lists that have no `kind`, where nothing at all is an answer.
        """
        token = ""
        while True:
            asked = request | {"page_token": token} if token else request
            page = self.call(service, method, asked, may_be_empty=may_be_empty)
            if hasattr(page, "warning"):
                require_complete(page)
            yield page
            if page.next_page_token == token and token:
                raise unreadable("a page repeats")
            token = page.next_page_token
            if not token:
                return

    def get_json(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        """GET a path below the API's root, again if that helps, and give the JSON object.

        For answers so large that their protobuf form costs too much. Raises ComputeError.
        """
        return with_retries(self._policy, lambda: self._get_json_once(path, query))

    def _get_json_once(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        with translated_errors():
            response = self._plain_session().get(
                f"{self._host()}/compute/v1/{path}",
                params=query,
                timeout=self._policy.request_timeout_seconds,
                allow_redirects=False,
            )
            if response.status_code >= FIRST_ERROR_STATUS:
                raise _error_of(response)
            body = response.json()
        if not isinstance(body, dict) or not body:
            raise unreadable("the answer is empty or no object")
        return body

    def _host(self) -> str:
        """Scheme and host, as the library's own clients have it."""
        host: str = self._service("InstancesClient").transport.host
        return host

    def _plain_session(self) -> Any:
        if self._session is None:
            import google.auth.transport.requests

            session: Any = google.auth.transport.requests.AuthorizedSession
            self._session = session(self._shared_credentials())
        return self._session

    def _service(self, name: str) -> Any:
        if name not in self._services:
            self._services[name] = self._new_service(name)
        return self._services[name]

    def _new_service(self, name: str) -> Any:
        from google.cloud import compute_v1

        options = {"api_endpoint": self._api_endpoint} if self._api_endpoint else {}
        client_class = getattr(compute_v1, name)
        return client_class(credentials=self._shared_credentials(), client_options=options)

    def _shared_credentials(self) -> Any:
        if self._credentials is None:
            self._credentials = load_credentials(self._credentials_name)
        return self._credentials


def require_usable(api_endpoint: str, credentials: str) -> None:
    """Raise ValueError for an endpoint or a word for credentials that cannot be used."""
    if credentials not in CREDENTIALS:
        raise ValueError(f"credentials must be one of {', '.join(CREDENTIALS)}")
    if api_endpoint and not api_endpoint.startswith(("http://", "https://")):
        raise ValueError(f"the API endpoint {api_endpoint!r} must start with http(s)://")


def load_credentials(name: str) -> Any:
    """The credentials of a name in CREDENTIALS. Raises google.auth's errors."""
    import google.auth
    import google.auth.credentials

    if name == "anonymous":
        anonymous: Any = google.auth.credentials.AnonymousCredentials
        return anonymous()
    credentials, _ = google.auth.default(scopes=SCOPES)
    return credentials


def _error_of(response: Any) -> Exception:
    import google.api_core.exceptions

    from_response: Any = google.api_core.exceptions.from_http_response
    error: Exception = from_response(response)
    return error


def require_content(message: Any) -> Any:
    """The message itself. Raises TRANSIENT when no field came.

    `{}` and `[]` parse as any message, and would read as an empty list. The service sends at
    least `kind`.
    """
    if not message.ListFields():
        raise unreadable("the answer is empty")
    return message


def require_complete(part: Any) -> None:
    """Raise TRANSIENT when a list or a scope of an aggregated list says that it lacks something."""
    require_no_gap(part.warning.code, part.warning.message, getattr(part, "unreachables", ()))


def require_no_gap(warning_code: str, warning_message: str, unreachables: Iterable[str]) -> None:
    """Raise TRANSIENT for a warning or a list of places that mean an incomplete answer."""
    if warning_code not in COMPLETE_WARNINGS:
        raise ComputeError(ErrorKind.TRANSIENT, warning_code, warning_message, 200)
    missing = ", ".join(unreachables)
    if missing:
        raise ComputeError(ErrorKind.TRANSIENT, "UNREACHABLE", missing, 200)
