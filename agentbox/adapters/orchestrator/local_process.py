"""The orchestrator slot over the program agent-host: a JSON-RPC client on its socket, authenticated
by the per-boot token."""

from typing import ClassVar

from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.client.agent_host.connection import connect
from agentbox.core.deadline import Deadline
from agentbox.manifest.slot_options import ProcessOptions


class LocalProcessOrchestrator(RpcOrchestrator):
    """Agents are processes of this box. A lost connection makes the instance `down`, and the slot
    opens a new one."""

    cfg: SlotConfig[ProcessOptions]
    impl: ClassVar[str] = "local-process"

    async def open(self, deadline: Deadline) -> None:
        """Send the slot's bounds to agent-host, which starts with those of the boot. Raises
        SlotUnavailable if it does not listen by the deadline."""
        bounds = {"limits": self.cfg.limits, **vars(self.cfg.options)}
        self._client, hello = await connect(self.cfg.paths, deadline, self.impl, bounds)
        self.capabilities = frozenset(hello["capabilities"])

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
