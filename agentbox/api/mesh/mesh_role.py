"""This box's role in the mesh: a host, a client, or none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.mesh import MeshStatus
from agentbox.manifest.declarations.options import Options

if TYPE_CHECKING:
    from agentbox.mesh.client.client import Client
    from agentbox.mesh.host.host import Host


@dataclass(frozen=True)
class MeshSlotStatus:
    """The slot status that readiness reads for the mesh."""

    state: str
    required: bool = False


def mesh_slots(host: "Host | None") -> Mapping[str, MeshSlotStatus]:
    """The mesh status for readiness: it does not keep a box from being ready."""
    return {"mesh": MeshSlotStatus("degraded")} if is_degraded(host) else {}


def is_degraded(host: "Host | None") -> bool:
    """Whether some or all sessions of a host cannot be read."""
    return host is not None and host.condition[0] != "ok"


class MeshRole:
    """`mode` is that of the manifest. `host` is None unless it is host, `client` unless it is
    client.
    """

    def __init__(self, mode: str, host: "Host | None", client: "Client | None") -> None:
        self.mode, self.host, self.client = mode, host, client

    async def open(self) -> None:
        """Called before the first request is served."""
        if self.host is not None:
            await self.host.open()

    async def close(self) -> None:
        if self.host is not None:
            await self.host.close()

    def start(self) -> None:
        """A client starts to join its host; the slots have been tried once by now."""
        if self.client is not None:
            self.client.start()

    async def deregister(self) -> None:
        """A client deregisters from its host; 10 s at most."""
        if self.client is not None:
            await self.client.deregister()

    def overlay(self, cfg: SlotConfig[Options]) -> SlotConfig[Options]:
        """The configuration of a slot with the values of the session."""
        return cfg if self.client is None else self.client.slots.overlay(cfg)

    @property
    def degraded(self) -> bool:
        """Whether some or all sessions of a host cannot be read."""
        return is_degraded(self.host)

    def health(self) -> dict[str, Any]:
        """The mesh part of `/health`: only the state on a standalone box."""
        return {"state": "off"} if self.mode == "standalone" else self.status().to_wire()

    def status(self) -> MeshStatus:
        """The body of `/v1/mesh/status`."""
        if self.host is not None:
            state, detail = self.host.condition
            host_state = "hosting" if state == "ok" else state
            return MeshStatus(
                mode=self.mode, state=host_state, reason=detail, sessions=self.host.counts
            )
        if self.client is not None:
            return self.client.status()
        return MeshStatus(mode=self.mode, state="off")
