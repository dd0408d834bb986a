"""Which actions wait, who may still ask, and what was decided. Kept in agents.db, so that a restart forgets none."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from agentbox.agents.approvals.request import (
    KINDS,
    MAX_PARAMETERS,
    ApprovalRequest,
    digest_of,
    format_parameters,
)
from agentbox.agents.registry.store import AgentStore, LifecycleEvent
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    NotFound,
    PermissionDenied,
    ValidationError,
    invalid_transition,
)

MAX_PENDING: Final = 3  # of one agent
DENIAL_SECONDS: Final = 600.0
MAX_PER_HOUR: Final = 10
APPROVAL_SECONDS: Final = 120.0  # an approval that nobody waits for any more: the asker was cut off
RETENTION_SECONDS: Final = 24 * 3600.0
_HOUR: Final = 3600.0
_MAX_WORDS: Final = 500  # characters of what an agent says

EmitEvent = Callable[[LifecycleEvent], Awaitable[None]]


class ApprovalRegistry:
    """Used by one event loop. `followers` is how many clients that may decide follow the events. `live`: whether a process of
    that agent runs; who starts in the place of one that ended has asked what that one asked."""

    def __init__(
        self,
        store: AgentStore,
        emit_event: EmitEvent,
        is_running: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._store, self._emit_event, self._is_running = store, emit_event, is_running
        self._requests: dict[str, ApprovalRequest] = {}
        self._decided: dict[str, asyncio.Event] = {}
        self.approver_count = 0

    async def load(self) -> None:
        """What an earlier process of this host kept: what waited waits on."""
        self._requests = {request.id: request for request in await self._store.approvals()}

    async def request_approval(
        self,
        agent: tuple[str, str],
        kind: str,
        value: str,
        parameters: dict[str, Any],
        words: str,
        seconds: float,
        *,
        hold: bool = False,
        family: str = "",
    ) -> None:
        """Returns when somebody has approved, which is good for this one use; with `hold` for the next that asks. `agent`: id and
        name; `family`: the outermost agent that it descends from, "" for one that descends from nobody. Raises PermissionDenied
        (scope `approvals`) and ValidationError."""
        agent_id, name = agent
        if kind not in KINDS:
            raise ValidationError(
                "cannot take /kind", errors=[{"pointer": "/kind", "detail": "is none that waits"}]
            )
        request = self._find_equal(digest_of(agent_id, kind, value, parameters))
        if request is None:
            now = time.time()
            request = ApprovalRequest(
                id=uuid7(),
                agent_id=agent_id,
                name=name,
                kind=kind,
                value=value,
                parameters=parameters,
                words=words[:_MAX_WORDS],
                asked=now,
                expires=now + seconds,
                family=family or agent_id,
            )
            self._check_allowed(request)
            self._requests[request.id] = request  # before anything is waited for: equal ones join
            await asyncio.shield(
                asyncio.create_task(self._submit(request))
            )  # whatever becomes of who asks
        await self._wait_for_decision(request)
        if request.state == "denied":
            raise _denied(request.reason or "it was denied")
        if request.state != "approved":
            raise _denied("an equal one was just approved, and used")
        if hold:
            return
        request.state = "used"
        await self._store.save_approval(request.id, request.asked, request.to_row())

    async def decide(
        self, approval_id: str, *, approve: bool, reason: str, by: str
    ) -> dict[str, Any]:
        """Raises NotFound, and InvalidTransition when it is decided, or over, already."""
        request = self.get(approval_id)
        self._expire((request,))
        if request.state != "waiting":
            to = "approved" if approve else "denied"
            raise invalid_transition(
                f"cannot decide {approval_id}: it is {request.state}",
                request.id,
                from_state=request.state,
                to_state=to,
            )
        await self._record_decision(request, approve=approve, reason=reason, by=by)
        return request.describe()

    def get(self, approval_id: str) -> ApprovalRequest:
        """Raises NotFound."""
        if (request := self._requests.get(approval_id)) is None:
            raise NotFound("cannot find this approval", resource="approval", id=approval_id)
        return request

    def page(self) -> list[dict[str, Any]]:
        """Those of the last day, oldest first."""
        self._expire(self._requests.values())
        return [
            request.describe()
            for request in sorted(self._requests.values(), key=lambda one: one.id)
        ]

    def _find_equal(self, digest: str) -> ApprovalRequest | None:
        """An equal one that waits, or was approved and not used."""
        now = time.time()
        equal = [request for request in self._requests.values() if request.digest == digest]
        self._expire(equal)
        for one in equal:
            if one.state == "waiting" or (
                one.state == "approved" and now - one.decided < APPROVAL_SECONDS
            ):
                return one
        return None

    def _check_allowed(self, request: ApprovalRequest) -> None:
        previous = [
            other for other in self._requests.values() if self._is_same_requester(other, request)
        ]
        self._expire(previous)
        denied = [
            one
            for one in previous
            if one.action == request.action and one.state == "denied" and one.by
        ]
        if any(request.asked - one.decided < DENIAL_SECONDS for one in denied):
            raise _denied("an equal one was denied less than 10 minutes ago")
        if len(format_parameters(request.parameters)) > MAX_PARAMETERS:
            raise _denied(
                f"its parameters are more than the {MAX_PARAMETERS} characters that a person is shown"
            )
        if sum(one.state == "waiting" for one in previous) >= MAX_PENDING:
            raise _denied(f"{MAX_PENDING} of this agent wait already")
        if sum(one.asked > request.asked - _HOUR for one in previous) >= MAX_PER_HOUR:
            raise _denied(f"this agent asked {MAX_PER_HOUR} times within the hour")

    def _is_same_requester(self, other: ApprovalRequest, request: ApprovalRequest) -> bool:
        """Whether that was asked by the agent itself, or by one of its name and family that has ended."""
        if other.agent_id == request.agent_id:
            return True
        return (other.family, other.name) == (
            request.family,
            request.name,
        ) and not self._is_running(other.agent_id)

    async def _submit(self, request: ApprovalRequest) -> None:
        for old in [
            other
            for other in self._requests.values()
            if other.asked < request.asked - RETENTION_SECONDS
        ]:
            del self._requests[old.id]
        if no_approver := not self.approver_count:
            request.state = (
                "denied"  # before anything is waited for: nobody is shown it as one that waits
            )
        await self._store.save_approval(request.id, request.asked, request.to_row())
        await self._emit_event(
            LifecycleEvent("approval.requested", request.agent_id, _event_data(request))
        )
        if no_approver:
            await self._record_decision(
                request, approve=False, reason="nobody who may decide follows the events", by=""
            )

    async def _wait_for_decision(self, request: ApprovalRequest) -> None:
        decided = self._decided.setdefault(request.id, asyncio.Event())
        try:
            async with asyncio.timeout(max(0.0, request.expires - time.time())):
                while request.state == "waiting":
                    await decided.wait()
        except TimeoutError:
            if request.state == "waiting":
                await self._record_decision(
                    request, approve=False, reason="nobody decided in time", by="urn:agentbox:box"
                )

    async def _record_decision(
        self, request: ApprovalRequest, *, approve: bool, reason: str, by: str
    ) -> None:
        request.state, request.reason = "approved" if approve else "denied", reason
        request.by, request.decided = by, time.time()
        if (decided := self._decided.pop(request.id, None)) is not None:
            decided.set()
        await self._store.save_approval(request.id, request.asked, request.to_row())
        verdict = "approve" if approve else "deny"
        data = {
            **_event_data(request),
            "verdict": verdict,
            "by": by,
            "reason": request.describe()["reason"],
        }
        await self._emit_event(LifecycleEvent("approval.decided", request.agent_id, data))

    def _expire(self, requests: Iterable[ApprovalRequest]) -> None:
        """Those that nobody waits for any more, and whose time is over."""
        now = time.time()
        for request in requests:
            if request.state == "waiting" and request.expires <= now:
                request.state, request.by, request.decided = (
                    "denied",
                    "urn:agentbox:box",
                    request.expires,
                )
                request.reason = "nobody decided in time"


def _event_data(request: ApprovalRequest) -> dict[str, Any]:
    description = request.describe()
    return {
        name: description[name]
        for name in ("id", "name", "kind", "value", "parameters", "digest", "words", "expires_at")
    }


def _denied(reason: str) -> PermissionDenied:
    return PermissionDenied(f"it needs an approval: {reason}", scope="approvals")
