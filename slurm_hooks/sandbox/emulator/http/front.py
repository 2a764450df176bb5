"""What every API call meets first: injected faults, and the log of calls."""

from __future__ import annotations

import asyncio
import time

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slurm_hooks.sandbox.emulator.faults import Fault, FaultKind
from slurm_hooks.sandbox.emulator.http.dispatch import error_answer
from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.problems import ApiError, Refusal, failure

_USAGE_REASONS = ("rateLimitExceeded", "quotaExceeded")
_CONTROL_PREFIX = "/emulator/"


class Front:
    """An ASGI layer around the application. The control surface passes through untouched."""

    def __init__(self, service: Service, app: ASGIApp) -> None:
        self._service = service
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_CONTROL_PREFIX):
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        fault = self._service.faults.take(scope["method"], scope["path"])
        try:
            await self._answer(fault, scope, receive, noting)
        finally:
            seconds = time.monotonic() - started
            self._service.note_call(scope["method"], scope["path"], status, seconds)

    async def _answer(
        self, fault: Fault | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if fault and fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        match fault:
            case Fault(kind=FaultKind.DROP):
                await _drop(scope, receive)
            case Fault(kind=FaultKind.HTTP | FaultKind.GARBAGE):
                await _faulty_answer(fault)(scope, receive, send)
            case Fault(kind=FaultKind.OPERATION):
                scope["operation_failure"] = failure(fault.code, fault.message)
                await self._app(scope, receive, send)
            case Fault(kind=FaultKind.STUCK):
                scope["operation_is_stuck"] = True
                await self._app(scope, receive, send)
            case Fault(kind=FaultKind.PARTIAL | FaultKind.TRUNCATED):
                scope["list_fault"] = fault.kind
                await self._app(scope, receive, send)
            case _:
                await self._app(scope, receive, send)


def _faulty_answer(fault: Fault) -> Response:
    if fault.kind is FaultKind.GARBAGE:
        return PlainTextResponse("<html>not JSON", fault.status, media_type="text/html")
    domain = "usageLimits" if fault.reason in _USAGE_REASONS else "global"
    word = "PERMISSION_DENIED" if fault.reason == "rateLimitExceeded" else ""
    message = fault.message or f"Injected fault: {fault.reason}"
    return error_answer(ApiError(fault.status, [Refusal(message, fault.reason)], domain, word))


async def _drop(scope: Scope, receive: Receive) -> None:
    """Close the connection without an answer, then wait until the server has noticed."""
    scope["connection"].abort()
    while (await receive())["type"] != "http.disconnect":
        pass
