"""The host: admits boxes, keeps their sessions alive as long as they beat, and ends them.

Every change is on disk before it is answered. Leases are of the boot clock: no step of a wall clock ends a session, and
after a restart of the host every active session gets one full lease.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog

from agentbox.contracts.mesh import Beat, BeatAnswer, MeshSession, Registered, Registration
from agentbox.contracts.mesh_errors import SessionEnded
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.linux.boottime import boottime
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import AdapterError, ContractMismatch, NotFound
from agentbox.core.storage.damaged_rows import State
from agentbox.mesh.host import offers
from agentbox.mesh.host.admission import Admission
from agentbox.mesh.host.live import Holder, Live
from agentbox.mesh.host.session_store import SessionStore, ended
from agentbox.mesh.metrics import HostMetrics
from agentbox.plan.model import Plan

TOKEN_BYTES = 32
PREFIX = "abm_"  # so that a scanner, and a person, knows what it has found
OLD_TOKEN_SECONDS = 60.0  # that a token still works after a repeated register
SLACK_SECONDS = 10.0  # of a lease, over the beats that may be missed
FORGET_SECONDS = 3600.0
Tell = Callable[[str, dict[str, Any]], None]  # (event type, data)
_log = structlog.get_logger()


class Host:
    """`plan` is asked for each time, since some of its keys are live. `scale` divides every time, for tests."""

    def __init__(
        self, plan: Callable[[], Plan], store: SessionStore, metrics: HostMetrics, tell: Tell, *,
        scale: float = 1.0, now: Callable[[], float] = boottime,
    ) -> None:  # fmt: skip
        self._plan, self._store, self._metrics, self._tell = plan, store, metrics, tell
        self._scale, self._now = scale, now
        self._admission = Admission(plan, now, scale)
        self._live: dict[str, Live] = {}
        self._by_token: dict[bytes, str] = {}
        self._ended: dict[str, str] = {}  # session id -> reason, while a token of it is remembered
        self._secrets: dict[str, bytes] = {}
        self._changing = asyncio.Lock()
        self._job: asyncio.Task[None] | None = None

    @property
    def heartbeat_s(self) -> float:
        return float(self._plan().mesh["heartbeat_seconds"])

    @property
    def lease_s(self) -> float:
        return self.heartbeat_s * int(self._plan().mesh["missed_heartbeats_before_eviction"]) + SLACK_SECONDS

    async def open(self) -> None:
        """Reads the sessions and begins to watch their leases. A store that cannot be read is tried again."""
        await self._load()
        self._job = asyncio.ensure_future(self._watch())

    async def _load(self) -> None:
        if (stored := await self._store.load()) is None:
            return
        self._secrets, self._by_token, self._ended = stored.secrets, stored.tokens, stored.ended
        self._live = {session.id: Live(session, self._lease()) for session in stored.active}
        for sha256, session_id in self._by_token.items():
            if (live := self._live.get(session_id)) is not None:
                live.tokens[sha256] = None
        self._count()

    def check_open(self) -> None:
        """Raises BackendError while the sessions cannot be read."""
        self._store.check_open()

    @property
    def condition(self) -> tuple[State, str]:
        """How its store is, and why."""
        return self._store.condition

    async def close(self) -> None:
        """Ends the watch; sessions stay as they are."""
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait({self._job})
            self._job = None
        await self._store.close()

    def holder(self, sha256: bytes) -> Holder | None:
        """Whose token has that hash. None when it is unknown, or was replaced more than a minute ago."""
        session_id = self._by_token.get(sha256, "")
        if (reason := self._ended.get(session_id)) is not None:
            return Holder(session_id, reason=reason)
        live = self._live.get(session_id)
        if live is None or sha256 not in live.tokens:
            return None
        until = live.tokens[sha256]
        if until is not None and until <= self._now():
            return None
        session = live.session
        scopes = offers.scopes(session.impls, offers.contracts(self._plan()))
        return Holder(session_id, session.instance_id, scopes)

    async def register(self, asked: Registration, principal: str) -> Registered:
        """A session for that box. Raises NotAdmitted, ContractMismatch, DuplicateInstance, RateLimited, QuotaExceeded,
        ValidationError."""
        async with self._changing:
            try:
                found = await self._register(asked, principal)
            except AdapterError as error:
                self._metrics.registers.labels(error.code).inc()
                self._tell(
                    "mesh.session.refused", {"session": None, "instance": asked.instance_id[:64], "reason": error.code}
                )
                raise
        self._metrics.registers.labels("resumed" if found.resumed else "opened").inc()
        return found

    async def _register(self, asked: Registration, principal: str) -> Registered:
        plan = self._plan()
        self._admission.check(asked, self._secrets.get(asked.instance_id), principal)
        ours = offers.contracts(plan)
        if rows := offers.mismatches(asked.contracts, asked.impls, ours):
            slots = ", ".join(row["slot"] for row in rows)
            raise ContractMismatch(f"cannot join: the contracts of {slots} have another major version", mismatches=rows)
        old = next((live for live in self._live.values() if live.session.instance_id == asked.instance_id), None)
        await self._admit_boot(asked, old)
        resumed = old is not None and old.session.boot_id == asked.boot_id
        if not resumed:
            self._admission.check_room(len(self._live) - (old is not None))
        value = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        session_id = await self._take(asked, principal, value, old, resumed=resumed)
        return Registered(
            session_id=session_id, resumed=resumed, token=value, heartbeat_s=self.heartbeat_s, lease_s=self.lease_s,
            contracts=offers.lower(asked, ours), endpoints=offers.endpoints(plan, asked.instance_id),
            endpoints_rev=offers.revision(plan), host_time=clock.now(),
        )  # fmt: skip

    async def _admit_boot(self, asked: Registration, old: Live | None) -> None:
        """Ends the session of an instance that shows itself to run twice, before DuplicateInstance is raised."""
        try:
            self._admission.check_boot(asked)
        except AdapterError:
            if old is not None:
                await self._end(old, "superseded", "duplicate-instance")
            raise

    async def _take(self, asked: Registration, principal: str, value: str, old: Live | None, *, resumed: bool) -> str:
        """The session's id, once it is on disk; the one before it is ended in the same transaction."""
        sha256, secret = hashlib.sha256(value.encode()).digest(), hashlib.sha256(asked.instance_secret).digest()
        session = MeshSession(
            id=old.session.id if resumed and old else uuid7(), instance_id=asked.instance_id, boot_id=asked.boot_id,
            principal=principal, image_hash=asked.image_hash, plan_digest=asked.plan_digest,
            posture_digest=asked.posture_digest, contracts=asked.contracts, impls=asked.impls, did=asked.did,
            api_base=asked.api_base, opened_at=old.session.opened_at if resumed and old else clock.now(),
        )  # fmt: skip
        known = {"session": session.id, "instance": session.instance_id}
        if resumed and old is not None:
            worn = [one for one, until in old.tokens.items() if until is not None and until <= self._now()]
            await self._store.save(session, token=sha256, dropped=worn)
            for one in worn:
                del old.tokens[one], self._by_token[one]
            grace = self._now() + OLD_TOKEN_SECONDS / self._scale
            old.tokens = {one: grace if until is None else until for one, until in old.tokens.items()} | {sha256: None}
            old.session, old.until = session, self._lease()
            self._tell("mesh.session.resumed", {**known, "reason": "register"})
        else:
            over = () if old is None else (ended(old.session, "superseded", clock.now()),)
            await self._store.save(*over, session, token=sha256, secret=secret)
            self._live[session.id] = Live(session, self._lease(), {sha256: None})
            self._secrets[session.instance_id] = secret
            if old is not None:
                self._gone(old, "superseded")
                self._tell("mesh.session.superseded", {**known, "session": old.session.id, "reason": "superseded"})
            self._tell("mesh.session.opened", {**known, "reason": "register"})
        self._by_token[sha256] = session.id
        self._count()
        return session.id

    async def beat(self, held: str, beat: Beat) -> BeatAnswer:
        """Renews the lease of the session whose token was sent, `held`. Raises SessionEnded, ContractMismatch."""
        live = self._live.get(held)
        if live is None or beat.session_id != held:
            self._metrics.beats.labels("ended").inc()
            reason = self._ended.get(held, "unknown") if beat.session_id == held else "unknown"
            raise SessionEnded(f"this session is over: {reason}", reason=reason)
        plan = self._plan()
        if rows := offers.mismatches(live.session.contracts, live.session.impls, offers.contracts(plan)):
            raise ContractMismatch("the host's contracts have another major version now", mismatches=rows)
        outcome = "stale"
        if beat.beat > live.session.beat:
            outcome = "ok"
            live.until = self._lease()
            live.session = replace(
                live.session, beat=beat.beat, last_beat_at=clock.now(), health=beat.health, ready=beat.ready,
                journal=beat.journal, outbox=beat.outbox,
            )  # fmt: skip
            await self._store.save(live.session)
        self._metrics.beats.labels(outcome).inc()
        return BeatAnswer(host_time=clock.now(), endpoints_rev=offers.revision(plan))

    async def deregister(self, held: str, session_id: str) -> MeshSession:
        """The session, closed; one that is over already stays as it is. Raises SessionEnded for another's id."""
        if session_id != held:
            raise SessionEnded("this session is over: unknown", reason="unknown")
        async with self._changing:
            if (live := self._live.get(held)) is not None:
                await self._end(live, "closed", "deregister")
        found = await self._store.show(held)
        if found is None:
            raise SessionEnded("this session is over: unknown", reason="unknown")
        return found

    async def evict(self, session_id: str) -> None:
        """Ends a session, its token at once. Raises NotFound for one that is not active."""
        async with self._changing:
            live = self._live.get(session_id)
            if live is None:
                raise NotFound("cannot find an active session of this id", resource="mesh session", id=session_id)
            await self._end(live, "evicted", "operator")

    async def show(self, session_id: str) -> MeshSession:
        """Raises NotFound."""
        live = self._live.get(session_id)
        found = live.session if live is not None else await self._store.show(session_id)
        if found is None:
            raise NotFound("cannot find this session", resource="mesh session", id=session_id)
        return found

    async def page(self, wanted: dict[str, str], limit: int, after: str) -> list[MeshSession]:
        """Sessions in order of id, by the columns state, instance_id and image_hash."""
        return await self._store.page(wanted, limit, after)

    @property
    def counts(self) -> dict[str, int]:
        """Active sessions, and those of the last day that are over."""
        return {"active": len(self._live), "ended": len(self._ended)}

    async def _watch(self) -> None:
        """Each second: leases that are over, or the store, where it could not be read. Each hour: what is too old to be kept."""
        forgotten = self._now()
        while True:
            await asyncio.sleep(1 / self._scale)
            try:
                if self.condition[0] == "down":
                    await self._load()
                    continue
                await self._sweep()
                if self._now() - forgotten >= FORGET_SECONDS:
                    forgotten = self._now()
                    await self._forget()
            except AdapterError as error:
                _log.error("sessions not swept", reason=error.message)

    async def _sweep(self) -> None:
        async with self._changing:
            for live in [one for one in self._live.values() if one.until <= self._now()]:
                await self._end(live, "expired", "no beat")

    async def _forget(self) -> None:
        await self._store.forget()
        kept = await self._store.tokens()
        self._by_token = {sha256: at for sha256, at in self._by_token.items() if sha256 in kept}
        self._ended = {at: reason for at, reason in self._ended.items() if at in kept.values()}

    async def _end(self, live: Live, reason: str, why: str) -> None:
        over = ended(live.session, reason, clock.now())
        await self._store.save(over)
        self._gone(live, reason)
        kind = "mesh.session.closed" if reason == "closed" else "mesh.session.evicted"
        known = {"session": over.id, "instance": over.instance_id}
        self._tell(kind, {**known, "reason": reason, "why": why, "last": to_wire(over.last_beat_at)})
        self._count()

    def _gone(self, live: Live, reason: str) -> None:
        del self._live[live.session.id]
        self._ended[live.session.id] = reason
        if reason != "closed":
            self._metrics.evictions.labels(reason).inc()

    def _lease(self) -> float:
        return self._now() + self.lease_s / self._scale

    def _count(self) -> None:
        for state, number in self.counts.items():
            self._metrics.sessions.labels(state).set(number)
