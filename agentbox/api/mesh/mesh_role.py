"""This box's role in the mesh: a host, a client, or none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.adapters.runtime.adapter import SlotConfig, SlotName
from agentbox.api.auth.access import Caller
from agentbox.api.boot_facts import BootFacts
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.contracts.mesh import MeshStatus
from agentbox.core.paths import Paths, environment
from agentbox.core.records.plain import to_plain
from agentbox.manifest.declarations.options import Options
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from agentbox.mesh.client.client import Client
    from agentbox.mesh.host.host import Host

SESSION = "mesh:session"
EmitEvent = Callable[[str, dict[str, Any]], None]  # (event type, data)
SCALE_HOOK = "AGENTBOX_TEST_CLOCK_SCALE"


def box_principal(instance_id: str) -> str:
    """The principal of a box on its host; its own callers are names below it."""
    return f"urn:agentbox:box:{instance_id}"


@dataclass(frozen=True)
class MeshSlotStatus:
    """The slot status that readiness reads for the mesh."""

    state: str
    required: bool = False


class MeshRole:
    """`host` is None unless `mesh.mode` is host, `client` unless it is client."""

    def __init__(self, plan: Plan) -> None:
        self.mode = plan.mesh.mode
        self.host: Host | None = None
        self.client: Client | None = None

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

    async def before_open(self, slot: SlotName) -> None:
        """Raises SlotUnavailable for a slot that waits for its session."""
        if self.client is not None:
            await self.client.slots.before_open(slot)

    def overlay(self, cfg: SlotConfig[Options]) -> SlotConfig[Options]:
        """The configuration of a slot with the values of the session."""
        return cfg if self.client is None else self.client.slots.overlay(cfg)

    def find_caller(self, sha256: bytes) -> Caller | None:
        """The caller with the session token of that hash: a box, restricted to its own data."""
        holder = self.host.find_holder(sha256) if self.host is not None else None
        if holder is None or holder.reason:
            return None
        return Caller(
            box_principal(holder.instance_id),
            holder.scopes | {SESSION},
            pod_prefix=f"boxes/{holder.instance_id}/",
            box=holder.instance_id,
            session=holder.session_id,
        )

    def find_ended_caller(self, sha256: bytes) -> Caller | None:
        """The caller with the token of an ended session; it may only get the reason of the end."""
        holder = self.host.find_holder(sha256) if self.host is not None else None
        return (
            Caller(scopes=frozenset({SESSION}), session=holder.session_id)
            if holder and holder.reason
            else None
        )

    @property
    def degraded(self) -> bool:
        """Whether some or all sessions of a host cannot be read."""
        return self.host is not None and self.host.condition[0] != "ok"

    def slots(self) -> Mapping[str, "MeshSlotStatus"]:
        """The mesh status for readiness: it does not keep a box from being ready."""
        return {"mesh": MeshSlotStatus("degraded")} if self.degraded else {}

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


def make_mesh_host(
    current: Callable[[], Plan],
    paths: Paths,
    emit_event: EmitEvent,
    registry: "CollectorRegistry",
    scale: float,
) -> "Host":
    """`current` returns the plan for live keys. Modules of a mode are imported only in that
    mode.
    """
    from agentbox.mesh.host.host import Host
    from agentbox.mesh.host.session_store import SessionStore
    from agentbox.mesh.metrics import HostMetrics

    return Host(
        current, SessionStore(paths.slot("mesh")), HostMetrics(registry), emit_event, scale=scale
    )


def enrolment_token(plan: Plan, paths: Paths) -> str:
    """The token with which boxes join a host; "" without one. Raises AgentboxError for an
    unreadable file.
    """
    return slot_secrets(paths, to_plain(plan.mesh)).get("token", "")


def clock_scale(plan: Plan, boot: BootFacts) -> float:
    """The divisor of mesh times: 1 except in a test image. Without a boot the environment sets
    it.
    """
    if not boot.boot_id and plan.test_hooks:
        return float(environment().get(SCALE_HOOK) or 1)
    return boot.hooks.clock_scale
