"""The sessions of a host in memory. Each change is stored first, then applied and reported."""

from collections.abc import Callable
from typing import Any

from agentbox.contracts.mesh import MeshSession
from agentbox.core import clock
from agentbox.core.records.wire import to_wire
from agentbox.mesh.host.active_session import ActiveSession
from agentbox.mesh.host.session_store import SessionStore, end_session
from agentbox.mesh.metrics import HostMetrics

EmitEvent = Callable[[str, dict[str, Any]], None]  # (event type, data)


class Sessions:
    """Active sessions, and those that ended within a day. `old_token_s`: for how long the previous
    token remains valid after a re-registration."""

    def __init__(
        self,
        store: SessionStore,
        metrics: HostMetrics,
        emit: EmitEvent,
        now: Callable[[], float],
        next_lease_end: Callable[[], float],
        old_token_s: float,
    ) -> None:
        self._store, self._metrics, self._emit = store, metrics, emit
        self._now, self._next_lease_end, self._old_token_s = now, next_lease_end, old_token_s
        self.active: dict[str, ActiveSession] = {}
        self.by_token: dict[bytes, str] = {}
        self.ended: dict[str, str] = {}  # session id -> reason, while one of its tokens is stored
        self.secrets: dict[str, bytes] = {}  # by instance

    async def load(self) -> None:
        """Nothing changes if the store cannot be read."""
        if (stored := await self._store.load()) is None:
            return
        self.secrets, self.by_token, self.ended = stored.secrets, stored.tokens, stored.ended
        self.active = {
            session.id: ActiveSession(session, self._next_lease_end()) for session in stored.active
        }
        for sha256, session_id in self.by_token.items():
            if (active := self.active.get(session_id)) is not None:
                active.tokens[sha256] = None
        self._update_metrics()

    def find_instance(self, instance_id: str) -> ActiveSession | None:
        """The active session of a box."""
        return next(
            (
                active
                for active in self.active.values()
                if active.session.instance_id == instance_id
            ),
            None,
        )

    async def resume(self, previous: ActiveSession, session: MeshSession, sha256: bytes) -> None:
        """Replaces the session by its new form, with a further token."""
        expired = [
            digest
            for digest, expires_at in previous.tokens.items()
            if expires_at is not None and expires_at <= self._now()
        ]
        await self._store.save(session, token=sha256, dropped=expired)
        for digest in expired:
            del previous.tokens[digest], self.by_token[digest]
        grace = self._now() + self._old_token_s
        previous.tokens = {
            digest: grace if until is None else until for digest, until in previous.tokens.items()
        } | {sha256: None}
        previous.session, previous.expires_at = session, self._next_lease_end()
        self._emit("mesh.session.resumed", {**_event_data(session), "reason": "register"})
        self.by_token[sha256] = session.id
        self._update_metrics()

    async def add(
        self, session: MeshSession, sha256: bytes, secret: bytes, previous: ActiveSession | None
    ) -> None:
        """Opens a session; the previous one of the instance ends in the same transaction."""
        superseded = (
            () if previous is None else (end_session(previous.session, "superseded", clock.now()),)
        )
        await self._store.save(*superseded, session, token=sha256, secret=secret)
        self.active[session.id] = ActiveSession(session, self._next_lease_end(), {sha256: None})
        self.secrets[session.instance_id] = secret
        if previous is not None:
            self._remove(previous, "superseded")
            self._emit(
                "mesh.session.superseded",
                {
                    **_event_data(session),
                    "session": previous.session.id,
                    "reason": "superseded",
                },
            )
        self._emit("mesh.session.opened", {**_event_data(session), "reason": "register"})
        self.by_token[sha256] = session.id
        self._update_metrics()

    async def expire(self) -> None:
        """Ends the sessions whose lease has expired."""
        for active in [
            candidate for candidate in self.active.values() if candidate.expires_at <= self._now()
        ]:
            await self.end(active, "expired", "no beat")

    async def discard_old(self) -> None:
        """Deletes old rows, and what was known of them."""
        await self._store.discard_old()
        stored = await self._store.tokens()
        self.by_token = {
            sha256: session_id for sha256, session_id in self.by_token.items() if sha256 in stored
        }
        self.ended = {
            session_id: reason
            for session_id, reason in self.ended.items()
            if session_id in stored.values()
        }

    async def end(self, active: ActiveSession, reason: str, cause: str) -> None:
        """Ends a session and its tokens."""
        session = end_session(active.session, reason, clock.now())
        await self._store.save(session)
        self._remove(active, reason)
        event_type = "mesh.session.closed" if reason == "closed" else "mesh.session.evicted"
        last = to_wire(session.last_beat_at)
        self._emit(
            event_type, {**_event_data(session), "reason": reason, "why": cause, "last": last}
        )
        self._update_metrics()

    @property
    def counts(self) -> dict[str, int]:
        """Number of active sessions, and of sessions that ended within a day."""
        return {"active": len(self.active), "ended": len(self.ended)}

    def _remove(self, active: ActiveSession, reason: str) -> None:
        del self.active[active.session.id]
        self.ended[active.session.id] = reason
        if reason != "closed":
            self._metrics.evictions.labels(reason).inc()

    def _update_metrics(self) -> None:
        for state, count in self.counts.items():
            self._metrics.sessions.labels(state).set(count)


def _event_data(session: MeshSession) -> dict[str, Any]:
    return {"session": session.id, "instance": session.instance_id}
