"""Pending and decided approvals, and limits on requests. Stored in agents.db, so that they survive
a restart."""

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
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.registry.store import AgentStore
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    NotFound,
    PermissionDenied,
    ValidationError,
    invalid_transition,
)

MAX_PENDING: Final = 3  # per agent
DENIAL_SECONDS: Final = 600.0
MAX_PER_HOUR: Final = 10
APPROVAL_SECONDS: Final = 120.0  # validity of an approval whose requester has disconnected
RETENTION_SECONDS: Final = 24 * 3600.0
_HOUR: Final = 3600.0
_MAX_WORDS: Final = 500  # characters of the agent's comment

EmitEvent = Callable[[LifecycleEvent], Awaitable[None]]


class ApprovalRegistry:
    """Used by one event loop. `approver_count` is the number of connected clients that may decide.
    `is_running`: whether a process of that agent runs; an agent that replaces an ended one inherits
    its requests."""

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
        """Load what an earlier process stored; pending approvals stay pending."""
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
        """Return once approved. An approval covers one use; with `hold`, that of the next request.
        `agent`: id and name; `family`: the root agent it descends from, "" for itself. Raises
        PermissionDenied (scope `approvals`) and ValidationError."""
        agent_id, name = agent
        if kind not in KINDS:
            raise ValidationError(
                "invalid /kind",
                errors=[{"pointer": "/kind", "detail": "is not a kind that needs an approval"}],
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
            self._requests[request.id] = request  # before any await: identical requests join it
            await asyncio.shield(
                asyncio.create_task(self._submit(request))
            )  # even if the caller is cancelled
        await self._wait_for_decision(request)
        if request.state == "denied":
            raise _denied(request.reason or "the request was denied")
        if request.state != "approved":
            raise _denied("an identical request was just approved and used")
        if hold:
            return
        request.state = "used"
        await self._store.save_approval(request.id, request.asked, request.to_row())

    async def decide(
        self, approval_id: str, *, approve: bool, reason: str, by: str
    ) -> dict[str, Any]:
        """Raises NotFound, and InvalidTransition if it is already decided or expired."""
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

    def page(self, is_visible: Callable[[str], bool] = lambda family: True) -> list[dict[str, Any]]:
        """Those of the last day whose family is visible, oldest first."""
        self._expire(self._requests.values())
        return [
            request.describe()
            for request in sorted(self._requests.values(), key=lambda request: request.id)
            if is_visible(request.family)
        ]

    def _find_equal(self, digest: str) -> ApprovalRequest | None:
        """An identical request that is pending, or approved and not used."""
        now = time.time()
        equal = [request for request in self._requests.values() if request.digest == digest]
        self._expire(equal)
        for request in equal:
            if request.state == "waiting" or (
                request.state == "approved" and now - request.decided < APPROVAL_SECONDS
            ):
                return request
        return None

    def _check_allowed(self, request: ApprovalRequest) -> None:
        previous = [
            other for other in self._requests.values() if self._is_same_requester(other, request)
        ]
        self._expire(previous)
        denied = [
            other
            for other in previous
            if other.action == request.action and other.state == "denied" and other.by
        ]
        if any(request.asked - other.decided < DENIAL_SECONDS for other in denied):
            raise _denied("an identical request was denied less than 10 minutes ago")
        if len(format_parameters(request.parameters)) > MAX_PARAMETERS:
            raise _denied(f"its parameters exceed the display limit of {MAX_PARAMETERS} characters")
        if sum(other.state == "waiting" for other in previous) >= MAX_PENDING:
            raise _denied(f"this agent already has {MAX_PENDING} pending approvals")
        if sum(other.asked > request.asked - _HOUR for other in previous) >= MAX_PER_HOUR:
            raise _denied(f"this agent made {MAX_PER_HOUR} requests within the hour")

    def _is_same_requester(self, other: ApprovalRequest, request: ApprovalRequest) -> bool:
        """Whether the request is from the same agent, or from an ended one of its name and
        family."""
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
            request.state = "denied"  # before any await: it is never listed as pending
        await self._store.save_approval(request.id, request.asked, request.to_row())
        await self._emit_event(
            LifecycleEvent("approval.requested", request.agent_id, _event_data(request))
        )
        if no_approver:
            await self._record_decision(
                request, approve=False, reason="no approver is connected", by=""
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
                    request, approve=False, reason="the approval timed out", by="urn:agentbox:box"
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
        """Deny expired requests that no caller waits for."""
        now = time.time()
        for request in requests:
            if request.state == "waiting" and request.expires <= now:
                request.state, request.by, request.decided = (
                    "denied",
                    "urn:agentbox:box",
                    request.expires,
                )
                request.reason = "the approval timed out"


def _event_data(request: ApprovalRequest) -> dict[str, Any]:
    description = request.describe()
    return {
        name: description[name]
        for name in ("id", "name", "kind", "value", "parameters", "digest", "words", "expires_at")
    }


def _denied(reason: str) -> PermissionDenied:
    return PermissionDenied(f"approval required: {reason}", scope="approvals")
