"""Which actions wait, who may still ask, and what was decided. Kept in agents.db, so that a restart forgets none."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from agentbox.agents.approvals.request import KINDS, MOST_SHOWN, Request, digest_of, spelled
from agentbox.agents.registry.store import Happening, Store
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import NotFound, PermissionDenied, ValidationError, invalid_transition

MOST_WAITING: Final = 3  # of one agent
STAYS_DENIED_SECONDS: Final = 600.0
MOST_AN_HOUR: Final = 10
GOOD_FOR_SECONDS: Final = 120.0  # an approval that nobody waits for any more: the asker was cut off
KEPT_SECONDS: Final = 24 * 3600.0
_HOUR: Final = 3600.0
_WORDS: Final = 500  # characters of what an agent says

Tell = Callable[[Happening], Awaitable[None]]


class Approvals:
    """Used by one event loop. `followers` is how many clients that may decide follow the events. `live`: whether a process of
    that agent runs; who starts in the place of one that ended has asked what that one asked."""

    def __init__(self, store: Store, tell: Tell, live: Callable[[str], bool] = lambda _: True) -> None:
        self._store, self._tell, self._live = store, tell, live
        self._known: dict[str, Request] = {}
        self._decided: dict[str, asyncio.Event] = {}
        self.followers = 0

    async def load(self) -> None:
        """What an earlier process of this host kept: what waited waits on."""
        self._known = {one.id: one for one in await self._store.approvals()}

    async def ask(
        self, agent: tuple[str, str], kind: str, value: str, parameters: dict[str, Any], words: str, seconds: float,
        *, hold: bool = False, family: str = "",
    ) -> None:  # fmt: skip
        """Returns when somebody has approved, which is good for this one use; with `hold` for the next that asks. `agent`: id and
        name; `family`: the outermost agent that it descends from, "" for one that descends from nobody. Raises PermissionDenied
        (scope `approvals`) and ValidationError."""
        agent_id, name = agent
        if kind not in KINDS:
            raise ValidationError("cannot take /kind", errors=[{"pointer": "/kind", "detail": "is none that waits"}])
        request = self._found(digest_of(agent_id, kind, value, parameters))
        if request is None:
            now = time.time()
            request = Request(
                id=uuid7(), agent_id=agent_id, name=name, kind=kind, value=value, parameters=parameters,
                words=words[:_WORDS], asked=now, expires=now + seconds, family=family or agent_id,
            )  # fmt: skip
            self._check(request)
            self._known[request.id] = request  # before anything is waited for: equal ones join
            await asyncio.shield(asyncio.create_task(self._begin(request)))  # whatever becomes of who asks
        await self._until_decided(request)
        if request.state == "denied":
            raise _denied(request.reason or "it was denied")
        if request.state != "approved":
            raise _denied("an equal one was just approved, and used")
        if hold:
            return
        request.state = "used"
        await self._store.keep_approval(request.id, request.asked, request.to_row())

    async def decide(self, approval_id: str, *, approve: bool, reason: str, by: str) -> dict[str, Any]:
        """Raises NotFound, and InvalidTransition when it is decided, or over, already."""
        request = self.get(approval_id)
        self._expire((request,))
        if request.state != "waiting":
            to = "approved" if approve else "denied"
            raise invalid_transition(
                f"cannot decide {approval_id}: it is {request.state}", request.id, was=request.state, to=to
            )
        await self._end(request, approve=approve, reason=reason, by=by)
        return request.shown()

    def get(self, approval_id: str) -> Request:
        """Raises NotFound."""
        if (found := self._known.get(approval_id)) is None:
            raise NotFound("cannot find this approval", resource="approval", id=approval_id)
        return found

    def page(self) -> list[dict[str, Any]]:
        """Those of the last day, oldest first."""
        self._expire(self._known.values())
        return [one.shown() for one in sorted(self._known.values(), key=lambda one: one.id)]

    def _found(self, digest: str) -> Request | None:
        """An equal one that waits, or was approved and not used."""
        now = time.time()
        equal = [one for one in self._known.values() if one.digest == digest]
        self._expire(equal)
        for one in equal:
            if one.state == "waiting" or (one.state == "approved" and now - one.decided < GOOD_FOR_SECONDS):
                return one
        return None

    def _check(self, request: Request) -> None:
        own = [one for one in self._known.values() if self._same(one, request)]
        self._expire(own)
        again = [one for one in own if one.action == request.action and one.state == "denied" and one.by]
        if any(request.asked - one.decided < STAYS_DENIED_SECONDS for one in again):
            raise _denied("an equal one was denied less than 10 minutes ago")
        if len(spelled(request.parameters)) > MOST_SHOWN:
            raise _denied(f"its parameters are more than the {MOST_SHOWN} characters that a person is shown")
        if sum(one.state == "waiting" for one in own) >= MOST_WAITING:
            raise _denied(f"{MOST_WAITING} of this agent wait already")
        if sum(one.asked > request.asked - _HOUR for one in own) >= MOST_AN_HOUR:
            raise _denied(f"this agent asked {MOST_AN_HOUR} times within the hour")

    def _same(self, one: Request, request: Request) -> bool:
        """Whether that was asked by the agent itself, or by one of its name and family that has ended."""
        if one.agent_id == request.agent_id:
            return True
        return (one.family, one.name) == (request.family, request.name) and not self._live(one.agent_id)

    async def _begin(self, request: Request) -> None:
        for old in [one for one in self._known.values() if one.asked < request.asked - KEPT_SECONDS]:
            del self._known[old.id]
        if alone := not self.followers:
            request.state = "denied"  # before anything is waited for: nobody is shown it as one that waits
        await self._store.keep_approval(request.id, request.asked, request.to_row())
        await self._tell(Happening("approval.requested", request.agent_id, _told(request)))
        if alone:
            await self._end(request, approve=False, reason="nobody who may decide follows the events", by="")

    async def _until_decided(self, request: Request) -> None:
        decided = self._decided.setdefault(request.id, asyncio.Event())
        try:
            async with asyncio.timeout(max(0.0, request.expires - time.time())):
                while request.state == "waiting":
                    await decided.wait()
        except TimeoutError:
            if request.state == "waiting":
                await self._end(request, approve=False, reason="nobody decided in time", by="urn:agentbox:box")

    async def _end(self, request: Request, *, approve: bool, reason: str, by: str) -> None:
        request.state, request.reason = "approved" if approve else "denied", reason
        request.by, request.decided = by, time.time()
        if (decided := self._decided.pop(request.id, None)) is not None:
            decided.set()
        await self._store.keep_approval(request.id, request.asked, request.to_row())
        verdict = "approve" if approve else "deny"
        about = {**_told(request), "verdict": verdict, "by": by, "reason": request.shown()["reason"]}
        await self._tell(Happening("approval.decided", request.agent_id, about))

    def _expire(self, requests: Iterable[Request]) -> None:
        """Those that nobody waits for any more, and whose time is over."""
        now = time.time()
        for one in requests:
            if one.state == "waiting" and one.expires <= now:
                one.state, one.by, one.decided = "denied", "urn:agentbox:box", one.expires
                one.reason = "nobody decided in time"


def _told(request: Request) -> dict[str, Any]:
    shown = request.shown()
    return {
        name: shown[name] for name in ("id", "name", "kind", "value", "parameters", "digest", "words", "expires_at")
    }


def _denied(why: str) -> PermissionDenied:
    return PermissionDenied(f"it needs an approval: {why}", scope="approvals")
