"""The lifecycle of the program: listen, open the slots, notify, serve until stopped."""

import asyncio
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from agentbox.api.app import Api
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
class ListenerAddresses:
    """The addresses of the two listeners."""

    api: tuple[str, int]
    metrics: tuple[str, int]


def listen_addresses(api: Api) -> ListenerAddresses:
    """In a container every address, since publishing controls access; else the addresses in the
    manifest.
    """
    plan = api.plans.current
    inside = api.paths.is_container
    return ListenerAddresses(
        (WILDCARD if inside else plan.api.publish_address, plan.api.port),
        (
            WILDCARD if inside else plan.observability.publish_address,
            plan.observability.metrics_port,
        ),
    )


async def serve(api: Api, bind_addresses: ListenerAddresses) -> None:
    """Runs until SIGTERM or SIGINT. Raises AgentboxError for a port in use or a required slot that
    does not open.
    """
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    async with AsyncExitStack() as stack:
        await api.access.store.open()
        stack.push_async_callback(api.access.store.close)
        stack.push_async_callback(api.access.logins.close)
        if api.outbox is not None:
            await api.outbox.open()
            stack.push_async_callback(api.outbox.close)
        await api.mesh.open()
        stack.push_async_callback(api.mesh.close)
        for listener in _listeners(api, bind_addresses):
            await listener.open()
            stack.push_async_callback(listener.close, CLOSE_SECONDS)
        await _run(api, stop_requested)


def _listeners(api: Api, bind_addresses: ListenerAddresses) -> tuple[Listener, Listener]:
    return (
        Listener(api.api, bind(*bind_addresses.api), API_BOUNDS),
        Listener(api.metrics, bind(*bind_addresses.metrics), METRICS_BOUNDS),
    )


async def _run(api: Api, stop_requested: asyncio.Event) -> None:
    held = api.hold.held
    if not held:
        api.tasks.start()
    releasing: asyncio.Future[None] | None = None
    evaluating = asyncio.ensure_future(api.evaluator.run())
    evaluating.add_done_callback(log_failures("readiness evaluator"))
    try:
        if await _open_slots(api, stop_requested):
            api.background.start()
            if held:
                releasing = asyncio.ensure_future(_start_when_released(api))
                releasing.add_done_callback(log_failures("start after the hold"))
            api.mesh.start()
            await _serve_until(stop_requested, evaluating)
        await _end(api)
    finally:
        running = {task for task in (evaluating, releasing) if task is not None}
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def _start_when_released(api: Api) -> None:
    """What a held start leaves out. The client of a mesh has joined by then: without its host's
    slots it would never be ready.
    """
    await api.hold.wait()
    api.tasks.start()


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


async def _open_slots(api: Api, stop_requested: asyncio.Event) -> bool:
    """Opens the slots; False when the program was stopped meanwhile. Raises CannotStart."""
    opening = asyncio.ensure_future(api.slots.start(lambda: _notify(api)))
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


def _notify(api: Api) -> None:
    """Notifies the seal: the listener accepts, and the required slots were tried. Does nothing
    without a boot.
    """
    if api.boot_id:
        notify(api.paths, API)


async def _end(api: Api) -> None:
    """Drains when the box goes down; when only this program stops, agents and tasks continue."""
    if api.drain.started or await asyncio.to_thread(_is_box_stopping, api):
        await api.drain.begin("SIGTERM")
        return
    api.closing.set()
    await api.tasks.stop()
    await api.shutdown.close()


def _is_box_stopping(api: Api) -> bool:
    """True unless supervisord keeps running. Without one (a bare start) this program is the whole
    box.
    """
    try:
        return SupervisorClient(api.paths).state() != "RUNNING"
    except (SupervisorUnavailable, OSError):
        return True
