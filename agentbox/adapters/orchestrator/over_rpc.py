"""The methods of the slot as calls of a JSON-RPC connection: what local-process and external-stdio share."""

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

T = TypeVar("T")
_HEALTH_SECONDS = 2.0
_CALL_SECONDS = 10
_SLACK_SECONDS = 5.0  # beyond a grace or a timeout that the peer holds itself


class OverRpc(Adapter):
    """A class sets `_client` in its `open`, and says in `peer` who is at the other end."""

    slot = "orchestrator"
    contract_version = CONTRACT_VERSION
    peer = "agent-host"
    _client: RpcClient | None = None

    async def health(self) -> Health:
        try:
            found = await self._call("ping", {}, _HEALTH_SECONDS)
        except AdapterError as error:
            return self.health_is("down", error.message)
        if isinstance(found, dict) and isinstance(why := found.get("degraded"), str) and why:
            return self.health_is("degraded", why)
        return self.health_is("ok", f"{self.peer} answers")

    async def spawn(
        self, spec: AgentSpec, *, request_id: str, stdin: bytes | None = None, attached: bool = False
    ) -> AgentHandle:
        params = {"spec": spec.to_wire(), "request_id": request_id, "stdin": to_wire(stdin), **_caller()}
        params |= self._attached(attached)
        return self._read(AgentHandle, await self._call("agent.spawn", params))

    async def list(self, flt: AgentFilter = ALL, *, limit: int = 100, cursor: str | None = None) -> Page[AgentInfo]:
        params = {"filter": flt.to_wire(), "limit": limit, "cursor": cursor}
        return self._read(Page[AgentInfo], await self._call("agent.list", params))

    async def get(self, agent_id: str) -> AgentInfo:
        return self._read(AgentInfo, await self._call("agent.get", {"agent_id": agent_id}))

    async def signal(self, handle: AgentHandle, sig: Signal) -> None:
        await self._call("agent.signal", {**handle.to_wire(), "signal": sig})

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        return self._read(
            AgentInfo, await self._call("grant.revoke", {"agent_id": agent_id, "grant_id": grant_id, **_caller()})
        )

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None = None) -> ExitRecord:
        grace = self.cfg.option("grace_seconds", 5) if grace_s is None else grace_s
        params = {**handle.to_wire(), "grace_s": grace_s}
        return self._read(ExitRecord, await self._call("agent.terminate", params, grace + _SLACK_SECONDS))

    async def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, attached: bool = False
    ) -> AsyncIterator[StreamItem]:
        params = {"agent_id": agent_id, "since": since, "follow": follow, **self._attached(attached)}
        subscription = await self._opened().subscribe("agent.stream", params, self._deadline(None))
        try:
            async with contextlib.aclosing(subscription.items()) as items:
                async for item in items:
                    yield self._read(StreamItem, item)
        finally:
            subscription.close()

    async def attach(self, handle: AgentHandle) -> Attachment:
        client = self._opened()
        subscription = await client.subscribe("agent.attach", handle.to_wire(), self._deadline(None))
        return LocalAttachment(client, subscription)

    async def run_once(
        self, spec: AgentSpec, *, request_id: str, stdin: bytes = b"", timeout_s: float = 600, max_output: int = 1 << 20
    ) -> RunResult:
        params = {
            "spec": spec.to_wire(), "request_id": request_id, "stdin": to_wire(stdin), "timeout_s": timeout_s,
            "max_output": max_output, **_caller(),
        }  # fmt: skip
        return self._read(RunResult, await self._call("agent.run_once", params, timeout_s + 2 * _SLACK_SECONDS))

    async def read_record(self, after: int, wait_s: float) -> tuple[JsonObj, ...]:
        """Lines of the peer's own record beyond `after`, which says that all up to it were taken for good; waits for the
        first up to `wait_s`. Raises NotFound where the peer keeps none (no capability `record`)."""
        found = await self._call("record.read", {"after": after, "wait_s": wait_s}, 2 * wait_s + _SLACK_SECONDS)
        return self._read(tuple[JsonObj, ...], found.get("items") if isinstance(found, dict) else found)

    async def read_denials(self, after: int, wait_s: float) -> DenialCounts:
        """The peer's counts, as soon as they are not those of revision `after`; waits for that up to `wait_s`. Raises
        NotFound where the peer keeps none (no capability `denials`)."""
        found = await self._call("denials.read", {"after": after, "wait_s": wait_s}, 2 * wait_s + _SLACK_SECONDS)
        return self._read(DenialCounts, found)

    async def ask(self, method: str, params: dict[str, Any], seconds: float | None = None) -> Any:
        """A method of the peer's that is no part of the contract. Raises NotFound where it has none of that name."""
        return await self._call(method, params, seconds)

    async def follow_approvals(self) -> None:
        """Somebody who may decide follows the events, as long as this waits. Raises what the connection ends with."""
        subscription = await self._opened().subscribe("approval.follow", {}, self._deadline(None))
        try:
            async with contextlib.aclosing(subscription.items()) as items:
                async for _ in items:
                    continue
        finally:
            subscription.close()

    def _attached(self, attached: bool) -> dict[str, Any]:
        return {"attached": True} if attached and "backpressure" in self.capabilities else {}

    async def _call(self, method: str, params: dict[str, Any], seconds: float | None = None) -> Any:
        return await self._opened().call(method, params, self._deadline(seconds))

    def _deadline(self, seconds: float | None) -> Deadline:
        mine = Deadline.after(self.cfg.option("timeout_seconds", _CALL_SECONDS) if seconds is None else seconds)
        given = context.current().deadline
        return mine if given is None else min(mine, given)

    def _read(self, kind: type[T], data: Any) -> T:
        """What the peer answered. Raises BackendError for what is no such thing."""
        try:
            return from_wire(kind, data)
        except ValidationError as error:
            raise BackendError(
                f"cannot use orchestrator: {self.peer} answers what is no {getattr(kind, '__name__', kind)}",
                slot=self.slot, impl=self.impl,
            ) from error  # fmt: skip

    def _opened(self) -> RpcClient:
        if self._client is None:
            raise SlotUnavailable(
                "cannot use orchestrator: it is not open",
                slot=self.slot, impl=self.impl, since=clock.to_wire(self.deps.clock.now()),
            )  # fmt: skip
        return self._client


def _caller() -> dict[str, Any]:
    call = context.current()
    found: dict[str, Any] = {
        "principal": call.principal, "admin": "admin" in call.scopes, "session_id": call.session_id or "",
        "trace_id": call.trace_id or "",
    }  # fmt: skip
    if (task := call.submission) is not None:
        found |= {"submitter": task.principal, "submitter_admin": task.admin, "state_id": task.state_id}
    return found
