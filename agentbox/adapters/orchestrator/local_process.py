"""The orchestrator slot over the program agent-host: a JSON-RPC client on its socket, authenticated
by the per-boot token."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.orchestrator import CONTRACT_VERSION
from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import RpcClient
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.manifest.slot_options import ProcessOptions

_RETRY_SECONDS = 0.02


async def connect(
    paths: Paths,
    deadline: Deadline,
    impl: str = "local-process",
    bounds: Mapping[str, Any] | None = None,
) -> tuple[RpcClient, dict[str, Any]]:
    """Return a connection accepted by agent-host and its hello. `bounds` apply there from then on.

    Waits for the socket within the deadline. Raises SlotUnavailable, PermissionDenied (a wrong
    token) or ContractMismatch.
    """
    client = await _open_connection(paths, deadline, impl)
    try:
        params = {
            "token": _token(paths),
            "contract_version": CONTRACT_VERSION,
            "bounds": bounds or {},
        }
        hello = await client.call("initialize", params, deadline)
    except BaseException:
        await client.close()
        raise
    return client, hello


def _token(paths: Paths) -> str:
    return paths.token("agent-host").read_text(encoding="ascii").strip()


async def _open_connection(paths: Paths, deadline: Deadline, impl: str) -> RpcClient:
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(
                paths.agent_host_socket, limit=messages.LINE_LIMIT
            )
            return RpcClient(reader, writer, impl)
        except OSError as error:
            if deadline.remaining() <= _RETRY_SECONDS:
                raise SlotUnavailable(
                    f"cannot reach agent-host: {error.strerror or error}",
                    hint="check its log in the box",
                    slot="orchestrator",
                    impl=impl,
                    since=clock.to_wire(clock.now()),
                ) from error
        await asyncio.sleep(_RETRY_SECONDS)


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
