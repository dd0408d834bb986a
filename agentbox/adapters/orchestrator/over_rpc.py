"""The methods of the slot as JSON-RPC calls: shared by local-process and external-stdio."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from agentbox.adapters.orchestrator.attachment import LocalAttachment
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Health, Page
from agentbox.contracts.agent_host.denials import DenialCounts
from agentbox.contracts.orchestrator import (
    ALL,
    CONTRACT_VERSION,
    AgentFilter,
    AgentHandle,
    AgentInfo,
    AgentSpec,
    Attachment,
    ExitRecord,
    RunResult,
    Signal,
    StreamItem,
)
from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import JsonObj, from_wire, to_wire
from agentbox.core.rpc.client import RpcClient
from agentbox.core.slot_errors import AdapterError, BackendError, SlotUnavailable, ValidationError
from agentbox.manifest.slot_options import CallTimeout, ProcessOptions

T = TypeVar("T")
_HEALTH_SECONDS = 2.0
_SLACK_SECONDS = 5.0  # added to a grace period or timeout that the peer enforces


class RpcOrchestrator(Adapter):
    """A subclass sets `_client` in `open` and names the other end in `peer`."""

    slot = "orchestrator"
    contract_version = CONTRACT_VERSION
    peer = "agent-host"
    _client: RpcClient | None = None

    async def health(self) -> Health:
        try:
            answer = await self._call("ping", {}, _HEALTH_SECONDS)
        except AdapterError as error:
            return self.health_is("down", error.message)
        if (
            isinstance(answer, dict)
            and isinstance(reason := answer.get("degraded"), str)
            and reason
        ):
            return self.health_is("degraded", reason)
        return self.health_is("ok", f"{self.peer} answers")

    async def spawn(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes | None = None,
        attached: bool = False,
    ) -> AgentHandle:
        params = {
            "spec": spec.to_wire(),
            "request_id": request_id,
            "stdin": to_wire(stdin),
            **_caller_params(),
        }
        params |= self._attached_params(attached)
        return self._decode(AgentHandle, await self._call("agent.spawn", params))

    async def list(
        self, filter: AgentFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[AgentInfo]:
        params = {"filter": filter.to_wire(), "limit": limit, "cursor": cursor}
        return self._decode(Page[AgentInfo], await self._call("agent.list", params))

    async def get(self, agent_id: str) -> AgentInfo:
        return self._decode(AgentInfo, await self._call("agent.get", {"agent_id": agent_id}))

    async def signal(self, handle: AgentHandle, sig: Signal) -> None:
        await self._call("agent.signal", {**handle.to_wire(), "signal": sig})

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        return self._decode(
            AgentInfo,
            await self._call(
                "grant.revoke", {"agent_id": agent_id, "grant_id": grant_id, **_caller_params()}
            ),
        )

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None = None) -> ExitRecord:
        default = ProcessOptions.of(self.cfg.options).grace_seconds
        grace = default if grace_s is None else grace_s
        params = {**handle.to_wire(), "grace_s": grace_s}
        return self._decode(
            ExitRecord, await self._call("agent.terminate", params, grace + _SLACK_SECONDS)
        )

    async def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, attached: bool = False
    ) -> AsyncIterator[StreamItem]:
        params = {
            "agent_id": agent_id,
            "since": since,
            "follow": follow,
            **self._attached_params(attached),
        }
        subscription = await self._require_client().subscribe(
            "agent.stream", params, self._deadline(None)
        )
        try:
            async with contextlib.aclosing(subscription.items()) as items:
                async for item in items:
                    yield self._decode(StreamItem, item)
        finally:
            subscription.close()

    async def attach(self, handle: AgentHandle) -> Attachment:
        client = self._require_client()
        subscription = await client.subscribe(
            "agent.attach", handle.to_wire(), self._deadline(None)
        )
        return LocalAttachment(client, subscription)

    async def run_once(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes = b"",
        timeout_s: float = 600,
        max_output: int = 1 << 20,
    ) -> RunResult:
        params = {
            "spec": spec.to_wire(),
            "request_id": request_id,
            "stdin": to_wire(stdin),
            "timeout_s": timeout_s,
            "max_output": max_output,
            **_caller_params(),
        }
        return self._decode(
            RunResult, await self._call("agent.run_once", params, timeout_s + 2 * _SLACK_SECONDS)
        )

    async def read_record(self, after: int, wait_s: float) -> tuple[JsonObj, ...]:
        """Return lines of the peer's record after `after`, which confirms all lines up to it; waits
        up to `wait_s` for the first. Raises NotFound if the peer keeps none (no capability
        `record`)."""
        answer = await self._call(
            "record.read", {"after": after, "wait_s": wait_s}, 2 * wait_s + _SLACK_SECONDS
        )
        return self._decode(
            tuple[JsonObj, ...], answer.get("items") if isinstance(answer, dict) else answer
        )

    async def read_denials(self, after: int, wait_s: float) -> DenialCounts:
        """Return the peer's counts once their revision differs from `after`; waits up to `wait_s`.
        Raises NotFound if the peer keeps none (no capability `denials`)."""
        answer = await self._call(
            "denials.read", {"after": after, "wait_s": wait_s}, 2 * wait_s + _SLACK_SECONDS
        )
        return self._decode(DenialCounts, answer)

    async def call_peer(
        self, method: str, params: dict[str, Any], seconds: float | None = None
    ) -> Any:
        """Call a method of the peer outside the contract. Raises NotFound if it does not exist."""
        return await self._call(method, params, seconds)

    async def watch_approvals(self) -> None:
        """Report a connected approver while this coroutine runs. Raises the error that ends the
        connection."""
        subscription = await self._require_client().subscribe(
            "approval.follow", {}, self._deadline(None)
        )
        try:
            async with contextlib.aclosing(subscription.items()) as items:
                async for _ in items:
                    continue
        finally:
            subscription.close()

    def _attached_params(self, attached: bool) -> dict[str, Any]:
        return {"attached": True} if attached and "backpressure" in self.capabilities else {}

    async def _call(self, method: str, params: dict[str, Any], seconds: float | None = None) -> Any:
        return await self._require_client().call(method, params, self._deadline(seconds))

    def _deadline(self, seconds: float | None) -> Deadline:
        default = CallTimeout.of(self.cfg.options).timeout_seconds
        deadline = Deadline.after(default if seconds is None else seconds)
        caller_deadline = context.current().deadline
        return deadline if caller_deadline is None else min(deadline, caller_deadline)

    def _decode(self, kind: type[T], data: Any) -> T:
        """Decode the response of the peer. Raises BackendError if it is invalid."""
        try:
            return from_wire(kind, data)
        except ValidationError as error:
            raise BackendError(
                (
                    f"cannot use orchestrator: {self.peer} did not return a valid "
                    f"{getattr(kind, '__name__', kind)}"
                ),
                slot=self.slot,
                impl=self.impl,
            ) from error

    def _require_client(self) -> RpcClient:
        if self._client is None:
            raise SlotUnavailable(
                "cannot use orchestrator: it is not open",
                slot=self.slot,
                impl=self.impl,
                since=clock.to_wire(self.deps.clock.now()),
            )
        return self._client


def _caller_params() -> dict[str, Any]:
    caller = context.current()
    params: dict[str, Any] = {
        "principal": caller.principal,
        "admin": "admin" in caller.scopes,
        "session_id": caller.session_id or "",
        "trace_id": caller.trace_id or "",
    }
    if (task := caller.submission) is not None:
        params |= {
            "submitter": task.principal,
            "submitter_admin": task.admin,
            "state_id": task.state_id,
        }
    return params
