"""The slot as JSON-RPC calls: shared by local-process and external-stdio. Its methods are derived
from the operations of the contract."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, TypeAlias, TypeVar

from agentbox.adapters.orchestrator.attachment import LocalAttachment
from agentbox.adapters.orchestrator.caller_params import current_caller
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Health, Page
from agentbox.client.agent_host.operation_calls import calls_operations
from agentbox.contracts.agent_host.rpc import RpcMethod, rpc_method
from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.orchestrator import (
    CONTRACT_VERSION,
    AgentHandle,
    AgentInfo,
    Attachment,
    ExitRecord,
    RunResult,
    StreamItem,
)
from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.rpc.client import RpcClient, Subscription
from agentbox.core.slot_errors import AdapterError, SlotUnavailable
from agentbox.manifest.slot_options import CallTimeout, ProcessOptions

T = TypeVar("T")
_Call: TypeAlias = Callable[..., Coroutine[Any, Any, T]]
_HEALTH_SECONDS = 2.0
_ATTACH = rpc_method(AGENTS, "attach")


@calls_operations(AGENTS, lambda adapter: adapter)
class RpcOrchestrator(Adapter):
    """A subclass sets `_client` in `open` and names the other end in `peer`. It is the peer of
    `AgentHost` too."""

    slot = "orchestrator"
    contract_version = CONTRACT_VERSION
    peer = "agent-host"
    _client: RpcClient | None = None
    spawn: _Call[AgentHandle]
    run_once: _Call[RunResult]
    list: _Call[Page[AgentInfo]]
    get: _Call[AgentInfo]
    signal: _Call[None]
    terminate: _Call[ExitRecord]
    revoke: _Call[AgentInfo]
    stream: Callable[..., AsyncIterator[StreamItem]]

    async def health(self) -> Health:
        try:
            answer = await self._require_client().call("ping", {}, self._deadline(_HEALTH_SECONDS))
        except AdapterError as error:
            return self.health_is("down", error.message)
        if (
            isinstance(answer, dict)
            and isinstance(reason := answer.get("degraded"), str)
            and reason
        ):
            return self.health_is("degraded", reason)
        return self.health_is("ok", f"{self.peer} answers")

    async def attach(self, handle: AgentHandle) -> Attachment:
        subscription = await self.subscribe(_ATTACH, _ATTACH.encode(_ATTACH.bind((handle,), {})))
        return LocalAttachment(self._require_client(), subscription)

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        """Call a method of the peer. Raises slot errors."""
        params = self._complete(method, params)
        return await self._require_client().call(method.name, params, self._deadline(seconds))

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        """Call a method of the peer whose results are items. Raises slot errors."""
        params = self._complete(method, params)
        return await self._require_client().subscribe(method.name, params, self._deadline(None))

    @property
    def grace_s(self) -> float:
        return ProcessOptions.of(self.cfg.options).grace_seconds

    def _complete(self, method: RpcMethod, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """With the caller, and without what only a peer with `backpressure` knows."""
        caller = current_caller() if method.operation.caller else {}
        dropped = () if "backpressure" in self.capabilities else method.internal
        return {name: value for name, value in params.items() if name not in dropped} | caller

    def _deadline(self, seconds: float | None) -> Deadline:
        default = CallTimeout.of(self.cfg.options).timeout_seconds
        deadline = Deadline.after(default if seconds is None else seconds)
        caller_deadline = context.current().deadline
        return deadline if caller_deadline is None else min(deadline, caller_deadline)

    def _require_client(self) -> RpcClient:
        if self._client is None:
            raise SlotUnavailable(
                "cannot use orchestrator: it is not open",
                slot=self.slot,
                impl=self.impl,
                since=clock.to_wire(self.deps.clock.now()),
            )
        return self._client
