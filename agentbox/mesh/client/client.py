"""A client: joins its host, beats, and goes on without it. No step here touches an agent.

Token and session are in memory only. Leases and waits are of the boot clock; wall clocks are compared and reported.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import structlog

from agentbox.contracts.mesh import Beat, MeshStatus, Registered, Registration
from agentbox.core import clock
from agentbox.core.linux.boottime import boottime
from agentbox.mesh.client import backoff
from agentbox.mesh.client.given_slots import GivenSlots
from agentbox.mesh.client.held import Facts, Held
from agentbox.mesh.client.instance import Instance
from agentbox.mesh.client.link import Link, Lost, Over, Refusal
from agentbox.mesh.client.skew import Skew
from agentbox.mesh.client.transitions import HELD, State, check
from agentbox.mesh.metrics import ClientMetrics

RESOLVE_SECONDS = 10.0
LEAVE_SECONDS = 5.0
Tell = Callable[[str, dict[str, Any]], None]
_log = structlog.get_logger()


class Client:
    """`start` begins, `leave` ends. `came_back` is called whenever the host answers again after it did not."""

    def __init__(
        self, instance: Instance, link: Link, slots: GivenSlots, facts: Facts, metrics: ClientMetrics, tell: Tell, *,
        came_back: Callable[[], None], drained: Callable[[float], Awaitable[None]], scale: float = 1.0,
    ) -> None:  # fmt: skip
        self.instance, self.slots = instance, slots
        self._link, self._facts, self._metrics, self._say = link, facts, metrics, tell
        self._came_back, self._drained, self._scale = came_back, drained, scale
        self.state: State = "idle"
        self.since: datetime = clock.now()
        self.reason = ""
        self._mismatches: tuple[Any, ...] = ()
        self._last_beat: datetime | None = None
        self._skew = Skew(metrics, self._tell)
        self._held: Held | None = None
        self._failures = 0
        self._retry_after: float | None = None
        self._wake = asyncio.Event()
        self._job: asyncio.Task[None] | None = None
        self._metrics.show(self.state)

    def start(self) -> None:
        """Begins to join; returns at once."""
        self._job = asyncio.get_running_loop().create_task(self._run(), name="mesh-client")
        self._job.add_done_callback(_tell_bug)

    def join(self) -> None:
        """A box that was refused, or waits, tries again now."""
        self._wake.set()

    async def leave(self) -> None:
        """Drains, deregisters once, and is closed; 10 s at most. Idempotent."""
        if self.state in ("leaving", "closed"):
            return
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait({self._job})
        self._move(17, "leaving")
        if self._held is not None:
            await self._drained(LEAVE_SECONDS)
            await self._deregister(self._held.found)
        await self._link.close()
        self._held = None
        self._move(18, "closed")

    def status(self) -> MeshStatus:
        """What is shown of it; no token."""
        return MeshStatus(
            mode="client", state=self.state, since=self.since, host=self._link.url, instance_id=self.instance.id,
            session_id=self._held.found.session_id if self._held else None, reason=self.reason,
            last_beat_at=self._last_beat, skew_s=self._skew.seconds, outbox=self._facts.outbox(), mismatches=self._mismatches,
            slots=self.slots.shown(),
        )  # fmt: skip

    async def _run(self) -> None:
        self._move(1, "registering")
        steps: dict[State, Callable[[], Awaitable[None]]] = {
            "registering": self._register, "backoff": self._back_off, "refused": self._stay_refused,
            "evicted": self._again, "resolving": self._serve,
        }  # fmt: skip
        while True:
            await steps[self.state]()

    async def _register(self) -> None:
        try:
            found = await self._asked()
        except Lost as error:
            self._retry_after, self.reason = error.retry_after, str(error)
            self._metrics.registers.labels("lost").inc()
            self._move(3, "backoff")
        except (Refusal, Over) as error:
            self._refuse(4, error)
        else:
            self._metrics.registers.labels("resumed" if found.resumed else "opened").inc()
            self._held, self.reason, self._mismatches = Held(found, found.endpoints_rev, boottime()), "", ()
            self._move(2, "resolving")
            self._tell("mesh.registered", resumed=found.resumed)

    async def _asked(self) -> Registered:
        asked = Registration(
            protocol=1, instance_id=self.instance.id, instance_secret=self.instance.secret, boot_id=self._facts.boot_id,
            sent_at=clock.now(), **self._facts.registration(),
        )  # fmt: skip
        with self._skew.call() as heard:
            found = await self._link.register(asked)
            heard(found.host_time)
        return found

    async def _back_off(self) -> None:
        wait = backoff.backoff(self._failures, self._retry_after)
        self._failures += 1
        await self._pause(wait)
        self._move(5, "registering")

    async def _stay_refused(self) -> None:
        await self._pause(backoff.refused())
        self._move(6, "registering")

    async def _again(self) -> None:
        """Evicted: joins again at once, with a little jitter. A box that was superseded has a twin, or a newer self."""
        if self.reason == "superseded":
            self._move(15, "refused")
            self._tell("mesh.refused", reason="superseded")
            return
        await self._pause(backoff.rejoin())
        self._move(15, "registering")

    async def _serve(self) -> None:
        """As long as there is a session: resolves, beats, suspects, comes back."""
        assert self._held is not None
        held, resolving = self._held, asyncio.ensure_future(self._resolve(self._held.found))
        due = boottime() + self._next_beat(held)
        try:
            while self.state in HELD:
                await self._until(due, resolving)
                if self.state == "resolving" and resolving.done():
                    resolving.result()
                    self._failures = 0
                    self._move(7, "active")
                if self.state == "suspect" and boottime() >= self._lease_end(held):
                    self._move(12, "partitioned")
                    self._tell("mesh.partitioned")
                if boottime() >= due:
                    await self._beat(held)
                    due = boottime() + self._next_beat(held)
        finally:
            resolving.cancel()

    async def _until(self, due: float, resolving: "asyncio.Future[None]") -> None:
        """Waits for what comes first: the next beat, the end of the lease, or the slots."""
        assert self._held is not None
        end = min(due, self._lease_end(self._held)) if self.state == "suspect" else due
        left = max(0.0, end - boottime())
        if self.state == "resolving":
            await asyncio.wait({resolving}, timeout=left)
        else:
            await asyncio.sleep(left)

    async def _resolve(self, found: Registered) -> None:
        for slot, why in self.slots.take(found.endpoints, found.token).items():
            self._tell("mesh.refused", slot=slot, reason=why)
        await self.slots.settled(RESOLVE_SECONDS)

    async def _beat(self, held: Held) -> None:
        held.beats += 1
        try:
            rev = await self._beaten(held)
            if rev != held.rev and self.state == "active":
                await self._renew(held)
            self._heard(held)
        except Lost as error:
            self._missed(held, str(error))
        except Over as error:
            self._evict(error.reason)
        except Refusal as error:
            if error.code == "contract-mismatch" and self.state != "resolving":
                self._refuse(16, error)
            elif error.code in ("unauthenticated", "contract-mismatch"):
                self._evict("unknown")
            else:
                self._missed(held, str(error))

    async def _beaten(self, held: Held) -> str:
        beat = Beat(
            session_id=held.found.session_id, beat=held.beats, sent_at=clock.now(), **await self._facts.beat()
        )  # fmt: skip
        with self._metrics.beat_seconds.time(), self._skew.call() as heard:
            answer = await self._link.beat(beat, held.found.token)
            heard(answer.host_time)
        held.last_ok, held.misses, self._last_beat = boottime(), 0, clock.now()
        self._metrics.beats.labels("ok").inc()
        return answer.endpoints_rev

    async def _renew(self, held: Held) -> None:
        """The host offers something else now: the same session, asked for anew. Raises Lost, Refusal."""
        found = await self._asked()
        held.found, held.rev, held.beats = found, found.endpoints_rev, 0
        self._move(9, "active")
        await self._resolve(found)

    def _heard(self, held: Held) -> None:
        if self.state in ("suspect", "partitioned"):
            self._move(11 if self.state == "suspect" else 13, "active")
            self.reason = ""
            self._tell("mesh.rejoined")
            self.slots.poke()
            self._came_back()
        elif self.state == "active":
            self._move(8, "active")

    def _missed(self, held: Held, why: str) -> None:
        held.misses += 1
        self._metrics.beats.labels("missed").inc()
        self.reason = why
        if self.state == "active":
            self._move(10, "suspect")
        self._tell("mesh.beat_missed", reason=why)

    def _evict(self, reason: str) -> None:
        self._tell("mesh.evicted", reason=reason)
        self._metrics.beats.labels("ended").inc()
        self.reason, self._held = reason, None
        self.slots.drop()
        self._move(14, "evicted")

    def _refuse(self, number: int, error: Refusal | Over) -> None:
        code = error.code if isinstance(error, Refusal) else error.reason
        self._mismatches = error.mismatches if isinstance(error, Refusal) else ()
        self._metrics.registers.labels(code).inc()
        self._tell("mesh.refused", reason=code, detail=str(error))
        self.reason = str(error)
        if self._held is not None:
            self._held = None
            self.slots.drop()
        self._move(number, "refused")

    async def _deregister(self, found: Registered) -> None:
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._link.leave(found.session_id, found.token)
            self._tell("mesh.deregistered", reason="stop")
        except (Lost, Refusal, Over, TimeoutError) as error:
            _log.warning("mesh.not_deregistered", reason=str(error))

    def _next_beat(self, held: Held) -> float:
        """Seconds to the next: soon after the first that fail, then as ever."""
        return backoff.next_beat(held.found.heartbeat_s, held.misses) / self._scale

    def _lease_end(self, held: Held) -> float:
        return held.last_ok + held.found.lease_s / self._scale

    async def _pause(self, seconds: float) -> None:
        """Until then, or until somebody says `join`."""
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds / self._scale):
                await self._wake.wait()
        except TimeoutError:
            return

    def _move(self, number: int, state: State) -> None:
        check(number, self.state, state)
        old, self.state = self.state, state
        if old != state:
            self.since = clock.now()
        self._metrics.moved(old, state)
        (_log.debug if number == 8 else _log.info)("mesh.transition", number=number, was=old, now=state)

    def _tell(self, kind: str, **data: Any) -> None:
        session = self._held.found.session_id if self._held else None
        self._say(kind, {"session": session, "instance": self.instance.id, "reason": "", **data})


def _tell_bug(job: "asyncio.Task[None]") -> None:
    if not job.cancelled() and (error := job.exception()) is not None:
        _log.error("mesh client ended", exc_info=error)
