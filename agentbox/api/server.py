"""The lifecycle of the program: listen, open the slots, notify, serve until stopped."""

import asyncio
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from agentbox.api.background.drain import close_slots
from agentbox.api.groups import make_groups
from agentbox.api.http.asgi import make_application
from agentbox.api.services import Services
from agentbox.box.supervision.notify import notify
from agentbox.box.supervision.rpc import SupervisorClient, SupervisorUnavailable
from agentbox.core.background.tasks import log_failures
from agentbox.core.http.connection import ConnectionLimits
from agentbox.core.http.listener import Listener, bind
from agentbox.plan.names import API

API_BOUNDS = ConnectionLimits(connections=512, reserved=16)
METRICS_BOUNDS = ConnectionLimits(connections=64)
WILDCARD = "0.0.0.0"
CLOSE_SECONDS = 0.5  # seconds in which running responses may end


@dataclass(frozen=True)
class Addresses:
    """The addresses of the two listeners."""

    api: tuple[str, int]
    metrics: tuple[str, int]


def listen_addresses(services: Services) -> Addresses:
    """In a container every address, since publishing controls access; else the addresses in the
    manifest.
    """
    api, metrics = services.plan.api, services.plan.observability
    inside = services.paths.is_container
    return Addresses(
        (WILDCARD if inside else api.publish_address, api.port),
        (WILDCARD if inside else metrics.publish_address, metrics.metrics_port),
    )


async def serve(services: Services, bind_addresses: Addresses) -> None:
    """Runs until SIGTERM or SIGINT. Raises AgentboxError for a port in use or a required slot that
    does not open.
    """
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    async with AsyncExitStack() as stack:
        await services.tokens.open()
        stack.push_async_callback(services.tokens.close)
        if services.outbox is not None:
            await services.outbox.open()
            stack.push_async_callback(services.outbox.close)
        await services.mesh.open()
        stack.push_async_callback(services.mesh.close)
        for listener in _listeners(services, bind_addresses):
            await listener.open()
            stack.push_async_callback(listener.close, CLOSE_SECONDS)
        await _run(services, stop_requested)


def _listeners(services: Services, bind_addresses: Addresses) -> tuple[Listener, Listener]:
    groups = make_groups(services)
    api, metrics = (make_application(services, groups, name) for name in ("api", "metrics"))
    return (
        Listener(api, bind(*bind_addresses.api), API_BOUNDS),
        Listener(metrics, bind(*bind_addresses.metrics), METRICS_BOUNDS),
    )


async def _run(services: Services, stop_requested: asyncio.Event) -> None:
    services.tasks.start()
    evaluating = asyncio.ensure_future(services.evaluator.run())
    evaluating.add_done_callback(log_failures("readiness evaluator"))
    try:
        if await _open_slots(services, stop_requested):
            services.background.start()
            services.mesh.start()
            await _serve_until(stop_requested, evaluating)
        await _end(services)
    finally:
        evaluating.cancel()
        await asyncio.wait({evaluating})


async def _serve_until(stop_requested: asyncio.Event, evaluating: "asyncio.Future[None]") -> None:
    """Waits for the stop request. If the evaluator ends first, so does this program, and
    supervisord restarts it: agents continue, and no box stays up with a stale verdict. Raises the
    error of the evaluator.
    """
    stopping = asyncio.ensure_future(stop_requested.wait())
    futures: set[asyncio.Future[Any]] = {stopping, evaluating}
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    if evaluating.done():
        evaluating.result()
        raise RuntimeError("the readiness evaluator ended by itself")


async def _open_slots(services: Services, stop_requested: asyncio.Event) -> bool:
    """Opens the slots; False when the program was stopped meanwhile. Raises CannotStart."""
    opening = asyncio.ensure_future(services.slots.start(lambda: _notify(services)))
    stopping = asyncio.ensure_future(stop_requested.wait())
    try:
        await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            opening.result()
        return opening.done()
    finally:
        opening.cancel()
        stopping.cancel()
        await asyncio.wait({opening, stopping})


def _notify(services: Services) -> None:
    """Notifies the seal: the listener accepts, and the required slots were tried. Does nothing
    without a boot.
    """
    if services.boot.boot_id:
        notify(services.paths, API)


async def _end(services: Services) -> None:
    """Drains when the box goes down; when only this program stops, agents and tasks continue."""
    if services.drain.started or await asyncio.to_thread(_is_box_stopping, services):
        await services.drain.begin("SIGTERM")
        return
    services.closing.set()
    await services.tasks.stop()
    await close_slots(services, services.background)


def _is_box_stopping(services: Services) -> bool:
    """True unless supervisord keeps running. Without one (a bare start) this program is the whole
    box.
    """
    try:
        return SupervisorClient(services.paths).state() != "RUNNING"
    except (SupervisorUnavailable, OSError):
        return True
