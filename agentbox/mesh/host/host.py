"""The mesh host: admits boxes, renews their sessions with each heartbeat, and ends them.

Changes are written before the response. Leases use the boot clock: wall-clock steps end no session,
and after a host restart each active session gets a full lease.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog

from agentbox.contracts.mesh import Heartbeat, HeartbeatReply, MeshSession, Registered, Registration
from agentbox.contracts.mesh_errors import SessionEnded
from agentbox.core import clock
from agentbox.core.linux.boottime import boottime
from agentbox.core.slot_errors import AdapterError, ContractMismatch, NotFound
from agentbox.core.storage.damaged_rows import State
from agentbox.mesh.host import offers
from agentbox.mesh.host.active_session import ActiveSession, TokenHolder, new_session
from agentbox.mesh.host.admission import Admission
from agentbox.mesh.host.session_store import SessionStore
from agentbox.mesh.host.sessions import Sessions
from agentbox.mesh.metrics import HostMetrics
from agentbox.plan.model import Plan

TOKEN_BYTES = 32
TOKEN_PREFIX = "abm_"  # identifiable by secret scanners
OLD_TOKEN_SECONDS = 60.0  # for which the previous token remains valid after a re-registration
LEASE_SLACK_SECONDS = 10.0  # added to the allowed missed heartbeats
CLEANUP_SECONDS = 3600.0
EmitEvent = Callable[[str, dict[str, Any]], None]  # (event type, data)
_log = structlog.get_logger()


class Host:
    """`plan` is called each time, since some of its keys are live. `scale` divides all times, for
    tests."""

    def __init__(
        self,
        plan: Callable[[], Plan],
        store: SessionStore,
        metrics: HostMetrics,
        emit: EmitEvent,
        *,
        scale: float = 1.0,
        now: Callable[[], float] = boottime,
    ) -> None:
        self._plan, self._store, self._metrics, self._emit = plan, store, metrics, emit
        self._scale, self._now = scale, now
        self._admission = Admission(plan, now, scale)
        self._sessions = Sessions(
            store, metrics, emit, now, self._next_lease_end, OLD_TOKEN_SECONDS / scale
        )
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def heartbeat_s(self) -> float:
        return self._plan().mesh.heartbeat_seconds

    @property
    def lease_s(self) -> float:
        return (
            self.heartbeat_s * self._plan().mesh.missed_heartbeats_before_eviction
            + LEASE_SLACK_SECONDS
        )

    async def open(self) -> None:
        """Loads the sessions and starts maintenance. An unreadable store is retried."""
        await self._sessions.load()
        self._task = asyncio.ensure_future(self._run_maintenance())

    def check_open(self) -> None:
        """Raises BackendError while the sessions cannot be read."""
        self._store.check_open()

    @property
    def condition(self) -> tuple[State, str]:
        """The state of the store, with a reason."""
        return self._store.condition

    async def close(self) -> None:
        """Stops maintenance; sessions stay as they are."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        await self._store.close()

    def find_holder(self, sha256: bytes) -> TokenHolder | None:
        """The holder of the token with this hash. None if unknown, or replaced more than a minute
        ago."""
        session_id = self._sessions.by_token.get(sha256, "")
        if (reason := self._sessions.ended.get(session_id)) is not None:
            return TokenHolder(session_id, reason=reason)
        active = self._sessions.active.get(session_id)
        if active is None or not active.is_valid(sha256, self._now()):
            return None
        session = active.session
        scopes = offers.scopes(session.impls, offers.offered_contracts(self._plan()))
        return TokenHolder(session_id, session.instance_id, scopes)

    async def register(self, registration: Registration, principal: str) -> Registered:
        """Creates or resumes a session. Raises NotAdmitted, ContractMismatch, DuplicateInstance,
        RateLimited, QuotaExceeded, ValidationError."""
        async with self._lock:
            try:
                registered = await self._register(registration, principal)
            except AdapterError as error:
                self._metrics.registrations.labels(error.code).inc()
                self._emit(
                    "mesh.session.refused",
                    {
                        "session": None,
                        "instance": registration.instance_id[:64],
                        "reason": error.code,
                    },
                )
                raise
        self._metrics.registrations.labels("resumed" if registered.resumed else "opened").inc()
        return registered

    async def _register(self, registration: Registration, principal: str) -> Registered:
        plan = self._plan()
        self._admission.check(
            registration, self._sessions.secrets.get(registration.instance_id), principal
        )
        host_contracts = offers.offered_contracts(plan)
        if mismatches := offers.mismatches(
            registration.contracts, registration.impls, host_contracts
        ):
            slots = ", ".join(row["slot"] for row in mismatches)
            raise ContractMismatch(
                f"cannot join: the contracts of {slots} have another major version",
                mismatches=mismatches,
            )
        previous = self._sessions.find_instance(registration.instance_id)
        await self._admit_boot(registration, previous)
        resumed = previous is not None and previous.session.boot_id == registration.boot_id
        if not resumed:
            self._admission.check_capacity(len(self._sessions.active) - (previous is not None))
        token = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        session_id = await self._save_session(
            registration, principal, token, previous, resumed=resumed
        )
        return Registered(
            session_id=session_id,
            resumed=resumed,
            token=token,
            heartbeat_s=self.heartbeat_s,
            lease_s=self.lease_s,
            contracts=offers.common_contracts(registration, host_contracts),
            endpoints=offers.offered_endpoints(plan, registration.instance_id),
            endpoints_rev=offers.revision(plan),
            host_time=clock.now(),
        )

    async def _admit_boot(self, registration: Registration, previous: ActiveSession | None) -> None:
        """Ends the session of a duplicate instance before DuplicateInstance is raised."""
        try:
            self._admission.check_boot(registration)
        except AdapterError:
            if previous is not None:
                await self._sessions.end(previous, "superseded", "duplicate-instance")
            raise

    async def _save_session(
        self,
        registration: Registration,
        principal: str,
        token: str,
        previous: ActiveSession | None,
        *,
        resumed: bool,
    ) -> str:
        """Saves the session and returns its id; the previous one ends in the same transaction."""
        sha256, secret = (
            hashlib.sha256(token.encode()).digest(),
            hashlib.sha256(registration.instance_secret).digest(),
        )
        resumed_session = previous.session if resumed and previous else None
        session = new_session(registration, principal, resumed_session)
        if resumed and previous is not None:
            await self._sessions.resume(previous, session, sha256)
        else:
            await self._sessions.add(session, sha256, secret, previous)
        return session.id

    async def heartbeat(self, token_session_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        """Renews the lease of the session of the token, `token_session_id`. Raises SessionEnded,
        ContractMismatch."""
        active = self._sessions.active.get(token_session_id)
        if active is None or heartbeat.session_id != token_session_id:
            self._metrics.heartbeats.labels("ended").inc()
            reason = (
                self._sessions.ended.get(token_session_id, "unknown")
                if heartbeat.session_id == token_session_id
                else "unknown"
            )
            raise SessionEnded(f"this session has ended: {reason}", reason=reason)
        plan = self._plan()
        if mismatches := offers.mismatches(
            active.session.contracts, active.session.impls, offers.offered_contracts(plan)
        ):
            raise ContractMismatch(
                "the host's contracts have another major version now", mismatches=mismatches
            )
        outcome = "stale"
        if heartbeat.beat > active.session.beat:
            outcome = "ok"
            active.expires_at = self._next_lease_end()
            active.session = replace(
                active.session,
                beat=heartbeat.beat,
                last_beat_at=clock.now(),
                health=heartbeat.health,
                ready=heartbeat.ready,
                journal=heartbeat.journal,
                outbox=heartbeat.outbox,
            )
            await self._store.save(active.session)
        self._metrics.heartbeats.labels(outcome).inc()
        return HeartbeatReply(host_time=clock.now(), endpoints_rev=offers.revision(plan))

    async def deregister(self, token_session_id: str, session_id: str) -> MeshSession:
        """Closes and returns the session; an ended one is unchanged. Raises SessionEnded for
        another id."""
        if session_id != token_session_id:
            raise SessionEnded("this session has ended: unknown", reason="unknown")
        async with self._lock:
            if (active := self._sessions.active.get(token_session_id)) is not None:
                await self._sessions.end(active, "closed", "deregister")
        session = await self._store.show(token_session_id)
        if session is None:
            raise SessionEnded("this session has ended: unknown", reason="unknown")
        return session

    async def evict(self, session_id: str) -> None:
        """Ends a session and its token at once. Raises NotFound if it is not active."""
        async with self._lock:
            active = self._sessions.active.get(session_id)
            if active is None:
                raise NotFound(
                    "cannot find an active session with this id",
                    resource="mesh session",
                    id=session_id,
                )
            await self._sessions.end(active, "evicted", "operator")

    async def show(self, session_id: str) -> MeshSession:
        """Raises NotFound."""
        active = self._sessions.active.get(session_id)
        session = active.session if active is not None else await self._store.show(session_id)
        if session is None:
            raise NotFound("cannot find this session", resource="mesh session", id=session_id)
        return session

    async def page(self, filters: dict[str, str], limit: int, after: str) -> list[MeshSession]:
        """Sessions in order of id, filtered by state, instance_id and image_hash."""
        return await self._store.page(filters, limit, after)

    @property
    def counts(self) -> dict[str, int]:
        """Number of active sessions, and of sessions that ended within a day."""
        return self._sessions.counts

    async def _run_maintenance(self) -> None:
        """Every second: expires leases, or retries the store. Every hour: deletes old rows."""
        last_cleanup = self._now()
        while True:
            await asyncio.sleep(1 / self._scale)
            try:
                if self.condition[0] == "down":
                    await self._sessions.load()
                    continue
                async with self._lock:
                    await self._sessions.expire()
                if self._now() - last_cleanup >= CLEANUP_SECONDS:
                    last_cleanup = self._now()
                    await self._sessions.discard_old()
            except AdapterError as error:
                _log.error("mesh session maintenance failed", reason=error.message)

    def _next_lease_end(self) -> float:
        return self._now() + self.lease_s / self._scale
