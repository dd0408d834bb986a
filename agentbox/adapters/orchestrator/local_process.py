"""The orchestrator slot over the program agent-host: a JSON-RPC client on its socket, known by the per-boot token."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from agentbox import clock
from agentbox.adapters import context
from agentbox.adapters.base import Adapter, Health, Page
from agentbox.adapters.deadline import Deadline
from agentbox.adapters.errors import AdapterError, SlotUnavailable
from agentbox.adapters.orchestrator import rpc
from agentbox.adapters.orchestrator.attachment import LocalAttachment
from agentbox.adapters.orchestrator.contract import (
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
from agentbox.adapters.orchestrator.rpc_client import RpcClient
from agentbox.adapters.wire import to_wire
from agentbox.settings import Paths

_RETRY_SECONDS = 0.02
_HEALTH_SECONDS = 2.0
_CALL_SECONDS = 10.0
_SLACK_SECONDS = 5.0  # beyond a grace or a timeout that agent-host holds itself


async def connect(
    paths: Paths, deadline: Deadline, impl: str = "local-process", bounds: Mapping[str, Any] | None = None
) -> tuple[RpcClient, dict[str, Any]]:
    """A connection that agent-host has accepted, and what it said of itself. `bounds` are in force there from then on.

    Waits for the socket within the deadline. Raises SlotUnavailable, PermissionDenied (a wrong token) or
    ContractMismatch.
    """
    client = await _reach(paths, deadline, impl)
    try:
        params = {"token": _token(paths), "contract_version": CONTRACT_VERSION, "bounds": bounds or {}}
        hello = await client.call("initialize", params, deadline)
    except BaseException:
        await client.close()
        raise
    return client, hello


def _token(paths: Paths) -> str:
    return paths.token("agent-host").read_text(encoding="ascii").strip()


async def _reach(paths: Paths, deadline: Deadline, impl: str) -> RpcClient:
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(paths.agent_host_socket, limit=rpc.LINE_LIMIT)
            return RpcClient(reader, writer, impl)
        except OSError as error:
            if deadline.remaining() <= _RETRY_SECONDS:
                raise SlotUnavailable(
                    f"cannot reach agent-host: {error.strerror or error}", hint="see its log in the box",
                    slot="orchestrator", impl=impl, since=clock.to_wire(clock.now()),
                ) from error  # fmt: skip
        await asyncio.sleep(_RETRY_SECONDS)


class LocalProcessOrchestrator(Adapter):
    """Agents are processes of this box. A lost connection makes the instance `down`; the container builds a new one."""

    slot = "orchestrator"
    impl: ClassVar[str] = "local-process"

    _client: RpcClient | None = None

    async def open(self, deadline: Deadline) -> None:
        """Brings the slot's bounds to agent-host, whose own are those of the boot. Raises SlotUnavailable when it does
        not listen by the deadline."""
        bounds = {
            "limits": self.cfg.limits,
            **{name: self.cfg.options[name] for name in rpc.BOUNDS if name in self.cfg.options},
        }
        self._client, hello = await connect(self.cfg.paths, deadline, self.impl, bounds)
        self.capabilities = frozenset(hello["capabilities"])

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def health(self) -> Health:
        try:
            await self._call("ping", {}, _HEALTH_SECONDS)
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "agent-host answers")

    async def spawn(self, spec: AgentSpec, *, request_id: str, stdin: bytes | None = None) -> AgentHandle:
        params = {"spec": spec.to_wire(), "request_id": request_id, "stdin": to_wire(stdin), **_caller()}
        return AgentHandle.from_wire(await self._call("agent.spawn", params, _CALL_SECONDS))

    async def list(self, flt: AgentFilter = ALL, *, limit: int = 100, cursor: str | None = None) -> Page[AgentInfo]:
        params = {"filter": flt.to_wire(), "limit": limit, "cursor": cursor}
        found = await self._call("agent.list", params, _CALL_SECONDS)
        return Page(items=tuple(AgentInfo.from_wire(row) for row in found["items"]), next_cursor=found["next_cursor"])

    async def get(self, agent_id: str) -> AgentInfo:
        return AgentInfo.from_wire(await self._call("agent.get", {"agent_id": agent_id}, _CALL_SECONDS))

    async def signal(self, handle: AgentHandle, sig: Signal) -> None:
        await self._call("agent.signal", {**handle.to_wire(), "signal": sig}, _CALL_SECONDS)

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None = None) -> ExitRecord:
        grace = self.cfg.option("grace_seconds", 5) if grace_s is None else grace_s
        params = {**handle.to_wire(), "grace_s": grace_s}
        return ExitRecord.from_wire(await self._call("agent.terminate", params, grace + _SLACK_SECONDS))

    async def stream(self, agent_id: str, *, since: int = 0, follow: bool = True) -> AsyncIterator[StreamItem]:
        params = {"agent_id": agent_id, "since": since, "follow": follow}
        subscription = await self._opened().subscribe("agent.stream", params, _deadline(_CALL_SECONDS))
        try:
            async with contextlib.aclosing(subscription.items()) as items:
                async for item in items:
                    yield StreamItem.from_wire(item)
        finally:
            subscription.close()

    async def attach(self, handle: AgentHandle) -> Attachment:
        client = self._opened()
        subscription = await client.subscribe("agent.attach", handle.to_wire(), _deadline(_CALL_SECONDS))
        return LocalAttachment(client, subscription)

    async def run_once(
        self, spec: AgentSpec, *, request_id: str, stdin: bytes = b"", timeout_s: float = 600, max_output: int = 1 << 20
    ) -> RunResult:
        params = {
            "spec": spec.to_wire(), "request_id": request_id, "stdin": to_wire(stdin), "timeout_s": timeout_s,
            "max_output": max_output, **_caller(),
        }  # fmt: skip
        return RunResult.from_wire(await self._call("agent.run_once", params, timeout_s + 2 * _SLACK_SECONDS))

    async def _call(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        return await self._opened().call(method, params, _deadline(seconds))

    def _opened(self) -> RpcClient:
        if self._client is None:
            raise SlotUnavailable(
                "cannot use orchestrator: it is not open",
                slot=self.slot, impl=self.impl, since=clock.to_wire(self.deps.clock.now()),
            )  # fmt: skip
        return self._client


def _caller() -> dict[str, Any]:
    call = context.current()
    return {"principal": call.principal, "admin": "admin" in call.scopes}


def _deadline(seconds: float) -> Deadline:
    mine = Deadline.after(seconds)
    given = context.current().deadline
    return mine if given is None else min(mine, given)
