"""Runs one emulator: its socket, its event loop, its signals and its orderly end.

It listens on loopback only: whoever reaches it may start processes as this user.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from slurm_hooks.sandbox.emulator import bodies
from slurm_hooks.sandbox.emulator.capacity import CapacityTable
from slurm_hooks.sandbox.emulator.clock import Clock
from slurm_hooks.sandbox.emulator.engine import Engine
from slurm_hooks.sandbox.emulator.guests import GuestProcesses, GuestSettings
from slurm_hooks.sandbox.emulator.http.app import create_app
from slurm_hooks.sandbox.emulator.http.service import Service
from slurm_hooks.sandbox.emulator.identifiers import Identifiers
from slurm_hooks.sandbox.emulator.options import EmulatorError, EmulatorOptions
from slurm_hooks.sandbox.emulator.places import Places
from slurm_hooks.sandbox.emulator.settings import FAST, Behaviour, Latency
from slurm_hooks.sandbox.emulator.world import World

_CLOSE_SECONDS = 2
_KEEP_ALIVE_SECONDS = 75  # longer than any client pauses, so that no call meets a closing socket
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
logger = logging.getLogger(__name__)


class _Protocol(H11Protocol):
    """Lets a fault reach the connection, to close it without an answer."""

    def connection_made(self, transport: Any) -> None:
        """Put the transport into each request's scope."""
        super().connection_made(transport)
        application = self.app

        async def with_connection(scope: Any, receive: Any, send: Any) -> None:
            scope["connection"] = transport
            await application(scope, receive, send)

        self.app = with_connection


def create_service(options: EmulatorOptions) -> Service:
    """An emulator without a socket. Raises EmulatorError if it may not write where it should."""
    clock = Clock()
    world = World(
        places=Places.of(options.zones),
        identifiers=Identifiers(options.project, options.project_number),
        now=clock.now(),
        latency=FAST if options.fast else Latency(),
        behaviour=Behaviour(calls_per_minute=0) if options.fast else Behaviour(),
        capacity=CapacityTable(options.default_capacity),
    )
    for zone, machine_type, vms in options.capacities:
        world.capacity.set_limit(zone, machine_type, vms)
    service = Service(Engine(world), clock, options.node_roots)
    if options.boot_command:
        settings = GuestSettings(
            options.boot_command, options.stop_command, options.serial_directory
        )
        try:
            world.guests = GuestProcesses(settings, world, service.perform)
        except OSError as error:
            raise EmulatorError(f"--serial-directory: {error}") from None
    return service


def run(options: EmulatorOptions, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or a shutdown call; `announce` gets the URL once it answers.

    Raises EmulatorError when the port cannot be bound.
    """
    asyncio.run(serve(options, announce, _STOP_SIGNALS))


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise EmulatorError(f"cannot listen on {host}:{port}: {error}") from None
    return listener


class _Server(uvicorn.Server):
    """A uvicorn server that says when it is up and leaves signals to us."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by the emulator, which stops the guests first."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self._started()


async def serve(
    options: EmulatorOptions,
    announce: Callable[[str], None],
    stop_signals: Sequence[signal.Signals] = (),
) -> None:
    """As `run`, in an event loop of the caller's; in a thread it must not be given signals."""
    listener = _bound(options.host, options.port)
    service = create_service(options)
    for number in stop_signals:
        asyncio.get_running_loop().add_signal_handler(number, service.shutdown_wanted.set)
    config = uvicorn.Config(
        create_app(service),
        http=_Protocol,
        loop="asyncio",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    server = _Server(config, lambda: announce(url))
    serving = asyncio.create_task(server.serve([listener]))
    running = asyncio.create_task(service.run_schedule())
    warming = asyncio.create_task(asyncio.to_thread(bodies.warm_up))
    stopping = asyncio.create_task(service.shutdown_wanted.wait())
    try:
        await asyncio.wait({serving, running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _stop(service, server, [serving, running, stopping, warming])


async def _stop(service: Service, server: uvicorn.Server, tasks: list[asyncio.Task[Any]]) -> None:
    serving, running, stopping, warming = tasks
    logger.info("stopping")
    guests = service.world.guests
    if isinstance(guests, GuestProcesses):
        await guests.stop_all()
    running.cancel()
    stopping.cancel()
    server.should_exit = True
    results = await asyncio.gather(serving, running, stopping, warming, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, asyncio.CancelledError):
            raise result
