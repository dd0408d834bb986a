"""The connection of a program of this box to agent-host, with the token of that program: it reaches
what the program made (`agents/rpc/program_access.py`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from agentbox.client.agent_host.connection import connect
from agentbox.client.reconnecting import ReconnectingConnection
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc.client import RpcClient


class ProgramConnection(ReconnectingConnection):
    """`caller` returns whom a call acts for: the members `principal`, `session_id` and `trace_id`
    of its params."""

    peer, impl = "agent-host", "local-process"

    def __init__(self, paths: Paths, program: str, caller: Callable[[], Mapping[str, str]]) -> None:
        super().__init__()
        self._paths, self._program, self._caller = paths, program, caller

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        caller = self._caller() if method.operation.caller else {}
        return await super().call(method, {**params, **caller}, seconds)

    async def _open(self, deadline: Deadline) -> RpcClient:
        client, hello = await connect(self._paths, deadline, program=self._program)
        self.capabilities = frozenset(hello["capabilities"])
        return client
