"""The mesh client: joins its host, sends heartbeats, and continues without it. It never affects
agents.

Token and session are held in memory only. Leases and waits use the boot clock; wall clocks are only
compared and reported.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import structlog

from agentbox.contracts.mesh import MeshStatus, Registered
from agentbox.core import clock
from agentbox.core.linux.boottime import boottime
from agentbox.mesh.client import backoff
from agentbox.mesh.client.clock_skew import ClockSkew
from agentbox.mesh.client.host_connection import (
    HostConnection,
    HostRefused,
    HostSessionEnded,
    HostUnreachable,
)
from agentbox.mesh.client.host_messages import DEREGISTER_SECONDS, HostMessageSender
from agentbox.mesh.client.instance import InstanceIdentity
from agentbox.mesh.client.session import BoxFacts, ClientSession
from agentbox.mesh.client.session_slots import SessionSlots
from agentbox.mesh.client.transitions import SESSION_STATES, State, check_transition
from agentbox.mesh.metrics import ClientMetrics

RESOLVE_SECONDS = 10.0
EmitEvent = Callable[[str, dict[str, Any]], None]
_log = structlog.get_logger()


class Client:
    """`start` joins, `deregister` ends. `on_reconnect` is called when the host is back after an
    outage."""

    def __init__(
        self,
        instance: InstanceIdentity,
        connection: HostConnection,
        slots: SessionSlots,
        facts: BoxFacts,
        metrics: ClientMetrics,
        emit: EmitEvent,
        *,
        on_reconnect: Callable[[], None],
        wait_drained: Callable[[float], Awaitable[None]],
        scale: float = 1.0,
    ) -> None:
        self.instance, self.slots = instance, slots
        self._outbox, self._metrics, self._emit_event = facts.outbox, metrics, emit
        self._on_reconnect, self._wait_drained, self._scale = on_reconnect, wait_drained, scale
        self.state: State = "idle"
        self.since: datetime = clock.now()
        self.reason = ""
        self._mismatches: tuple[Any, ...] = ()
        self._messages = HostMessageSender(
            instance, connection, facts, metrics, ClockSkew(metrics, self._emit)
        )
        self._session: ClientSession | None = None
        self._failures = 0
        self._retry_after: float | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._metrics.set_state(self.state)

    def start(self) -> None:
        """Starts joining in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="mesh-client")
        self._task.add_done_callback(_log_failure)

    def join(self) -> None:
        """Retries now, after a refusal or during a wait."""
        self._wake.set()

    async def deregister(self) -> None:
        """Drains, deregisters once and closes, within 10 s. Idempotent."""
        if self.state in ("leaving", "closed"):
            return
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._transition(17, "leaving")
        if self._session is not None:
            await self._wait_drained(DEREGISTER_SECONDS)
            if await self._messages.deregister(self._session.registered):
                self._emit("mesh.deregistered", reason="stop")
        await self._messages.close()
        self._session = None
        self._transition(18, "closed")

    def status(self) -> MeshStatus:
        """The status, without the token."""
        return MeshStatus(
            mode="client",
            state=self.state,
            since=self.since,
            host=self._messages.host_url,
            instance_id=self.instance.id,
            session_id=self._session.registered.session_id if self._session else None,
            reason=self.reason,
            last_beat_at=self._messages.last_heartbeat,
            skew_s=self._messages.skew.seconds,
            outbox=self._outbox(),
            mismatches=self._mismatches,
            slots=self.slots.status(),
        )

    async def _run(self) -> None:
        self._transition(1, "registering")
        steps: dict[State, Callable[[], Awaitable[None]]] = {
            "registering": self._register,
            "backoff": self._back_off,
            "refused": self._wait_refused,
            "evicted": self._rejoin,
            "resolving": self._run_session,
        }
        while True:
            await steps[self.state]()

    async def _register(self) -> None:
        try:
            registered = await self._messages.register()
        except HostUnreachable as error:
            self._retry_after, self.reason = error.retry_after, str(error)
            self._metrics.registrations.labels("lost").inc()
            self._transition(3, "backoff")
        except (HostRefused, HostSessionEnded) as error:
            self._refuse(4, error)
        else:
            self._metrics.registrations.labels("resumed" if registered.resumed else "opened").inc()
            self._session, self.reason, self._mismatches = (
                ClientSession(registered, registered.endpoints_rev, boottime()),
                "",
                (),
            )
            self._transition(2, "resolving")
            self._emit("mesh.registered", resumed=registered.resumed)

    async def _back_off(self) -> None:
        wait = backoff.retry_delay(self._failures, self._retry_after)
        self._failures += 1
        await self._pause(wait)
        self._transition(5, "registering")

    async def _wait_refused(self) -> None:
        await self._pause(backoff.refused_delay())
        self._transition(6, "registering")

    async def _rejoin(self) -> None:
        """Rejoins after a short jitter. A superseded box does not: another box runs with its
        identity."""
        if self.reason == "superseded":
            self._transition(15, "refused")
            self._emit("mesh.refused", reason="superseded")
            return
        await self._pause(backoff.rejoin_delay())
        self._transition(15, "registering")

    async def _run_session(self) -> None:
        """Runs the session: resolves slots, sends heartbeats, tracks the lease."""
        assert self._session is not None
        session, resolving = (
            self._session,
            asyncio.ensure_future(self._resolve(self._session.registered)),
        )
        due = boottime() + session.heartbeat_delay(self._scale)
        try:
            while self.state in SESSION_STATES:
                await self._wait_next(due, resolving)
                if self.state == "resolving" and resolving.done():
                    resolving.result()
                    self._failures = 0
                    self._transition(7, "active")
                if self.state == "suspect" and boottime() >= session.lease_end(self._scale):
                    self._transition(12, "partitioned")
                    self._emit("mesh.partitioned")
                if boottime() >= due:
                    await self._heartbeat(session)
                    due = boottime() + session.heartbeat_delay(self._scale)
        finally:
            resolving.cancel()

    async def _wait_next(self, due: float, resolving: "asyncio.Future[None]") -> None:
        """Waits for the next heartbeat, the end of the lease, or the slots."""
        assert self._session is not None
        end = min(due, self._session.lease_end(self._scale)) if self.state == "suspect" else due
        timeout = max(0.0, end - boottime())
        if self.state == "resolving":
            await asyncio.wait({resolving}, timeout=timeout)
        else:
            await asyncio.sleep(timeout)

    async def _resolve(self, registered: Registered) -> None:
        for slot, reason in self.slots.apply(registered.endpoints, registered.token).items():
            self._emit("mesh.refused", slot=slot, reason=reason)
        await self.slots.wait_all_applied(RESOLVE_SECONDS)

    async def _heartbeat(self, session: ClientSession) -> None:
        session.heartbeats += 1
        try:
            rev = await self._messages.heartbeat(session)
            if rev != session.rev and self.state == "active":
                await self._renew(session)
            self._on_answered(session)
        except HostUnreachable as error:
            self._on_missed(session, str(error))
        except HostSessionEnded as error:
            self._evict(error.reason)
        except HostRefused as error:
            if error.code == "contract-mismatch" and self.state != "resolving":
                self._refuse(16, error)
            elif error.code in ("unauthenticated", "contract-mismatch"):
                self._evict("unknown")
            else:
                self._on_missed(session, str(error))

    async def _renew(self, session: ClientSession) -> None:
        """Registers again since the host's offers changed; the session stays. Raises
        HostUnreachable, HostRefused."""
        registered = await self._messages.register()
        session.registered, session.rev, session.heartbeats = (
            registered,
            registered.endpoints_rev,
            0,
        )
        self._transition(9, "active")
        await self._resolve(registered)

    def _on_answered(self, session: ClientSession) -> None:
        if self.state in ("suspect", "partitioned"):
            self._transition(11 if self.state == "suspect" else 13, "active")
            self.reason = ""
            self._emit("mesh.rejoined")
            self.slots.retry_down()
            self._on_reconnect()
        elif self.state == "active":
            self._transition(8, "active")

    def _on_missed(self, session: ClientSession, reason: str) -> None:
        session.misses += 1
        self._metrics.heartbeats.labels("missed").inc()
        self.reason = reason
        if self.state == "active":
            self._transition(10, "suspect")
        self._emit("mesh.beat_missed", reason=reason)

    def _evict(self, reason: str) -> None:
        self._emit("mesh.evicted", reason=reason)
        self._metrics.heartbeats.labels("ended").inc()
        self.reason, self._session = reason, None
        self.slots.drop()
        self._transition(14, "evicted")

    def _refuse(self, number: int, error: HostRefused | HostSessionEnded) -> None:
        code = error.code if isinstance(error, HostRefused) else error.reason
        self._mismatches = error.mismatches if isinstance(error, HostRefused) else ()
        self._metrics.registrations.labels(code).inc()
        self._emit("mesh.refused", reason=code, detail=str(error))
        self.reason = str(error)
        if self._session is not None:
            self._session = None
            self.slots.drop()
        self._transition(number, "refused")

    async def _pause(self, seconds: float) -> None:
        """Waits for the time or for `join`."""
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds / self._scale):
                await self._wake.wait()
        except TimeoutError:
            return

    def _transition(self, number: int, state: State) -> None:
        check_transition(number, self.state, state)
        previous, self.state = self.state, state
        if previous != state:
            self.since = clock.now()
        self._metrics.record_transition(previous, state)
        (_log.debug if number == 8 else _log.info)(
            "mesh.transition", number=number, was=previous, now=state
        )

    def _emit(self, event_type: str, **data: Any) -> None:
        session = self._session.registered.session_id if self._session else None
        self._emit_event(
            event_type, {"session": session, "instance": self.instance.id, "reason": "", **data}
        )


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("mesh client failed", exc_info=error)
