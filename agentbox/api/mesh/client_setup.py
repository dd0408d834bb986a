"""Builds a mesh client from the parts of a running API."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbox.adapters.runtime.adapter import SLOTS, SlotConfig, SlotName, slot_config
from agentbox.adapters.runtime.registry import resolve
from agentbox.api.mesh.mesh_role import box_principal, clock_scale, enrolment_token
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError
from agentbox.manifest.declarations.options import Options
from agentbox.mesh.client.client import Client
from agentbox.mesh.client.host_connection import HostConnection
from agentbox.mesh.client.instance import load_or_create
from agentbox.mesh.client.session import BoxFacts
from agentbox.mesh.client.session_slots import SessionSlots
from agentbox.mesh.metrics import ClientMetrics

if TYPE_CHECKING:
    from agentbox.api.services import Services


def make_mesh_client(services: "Services") -> Client:
    """Raises AgentboxError when the identity of this box cannot be read or created."""
    mesh, paths = services.plan.mesh, services.paths
    instance = load_or_create(paths.slot("mesh"))
    ca_file = mesh.ca_file
    connection = HostConnection(
        mesh.host_url,
        enrolment_token(services.plan, paths),
        timeout=mesh.connect_timeout_seconds,
        ca_file=paths.resolve(ca_file) if ca_file else None,
    )
    slots = SessionSlots(
        lambda: _configs(services),
        services.slots,
        host_url=connection.url,
        ca_file=ca_file,
        box_name=box_principal(instance.id),
    )
    return Client(
        instance,
        connection,
        slots,
        _box_facts(services),
        ClientMetrics(services.registry),
        services.slots.journal.record_soon,
        on_reconnect=services.outbox.wake if services.outbox else lambda: None,
        wait_drained=services.outbox.wait_drained if services.outbox else _skip_drain,
        scale=clock_scale(services.plan, services.boot),
    )


async def _skip_drain(_seconds: float) -> None:
    """Beads are local: no results are queued."""


def _configs(services: "Services") -> Mapping[SlotName, SlotConfig[Options]]:
    plan, paths = services.plan, services.paths
    return {
        slot: slot_config(plan, paths, slot, slot_secrets(paths, plan.slots[slot].options))
        for slot in SLOTS
    }


def _box_facts(services: "Services") -> BoxFacts:
    boot, plan = services.boot, services.plan
    impls = {str(slot): plan.slots[slot].use for slot in SLOTS}

    def registration() -> dict[str, Any]:
        return {
            "image_hash": boot.digests.get("image") or "",
            "plan_digest": boot.plan_digest,
            "posture_digest": boot.posture_digest,
            "impls": impls,
            "api_base": plan.api.public_base,
            "contracts": {slot: resolve(slot, use).contract_version for slot, use in impls.items()},  # type: ignore[arg-type]
        }

    def outbox_status() -> dict[str, Any]:
        return services.outbox.status() if services.outbox else {}

    async def heartbeat() -> dict[str, Any]:
        health = {str(slot): row.state for slot, row in services.slots.status().items()}
        return {
            "health": health,
            "ready": services.evaluator.verdict.ready,
            "journal": await _head(services),
            "outbox": outbox_status(),
        }

    return BoxFacts(
        boot_id=boot.boot_id or uuid7(),
        registration=registration,
        heartbeat=heartbeat,
        outbox=outbox_status,
    )


async def _head(services: "Services") -> dict[str, Any]:
    """Empty while the journal is unavailable."""
    try:
        seq, digest = await services.slots.events.head()
    except AdapterError:
        return {}
    return {"seq": seq, "hash": digest}
