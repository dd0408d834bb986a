"""Builds a mesh client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbox.adapters.runtime.adapter import SLOTS, SlotConfig, SlotName, slot_config
from agentbox.adapters.runtime.registry import resolve
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.boot_facts import BootFacts
from agentbox.api.mesh.host_setup import clock_scale, enrolment_token
from agentbox.api.mesh.session_callers import box_principal
from agentbox.api.plan_source import PlanSource
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.supervision.slot_credentials import slot_secrets
from agentbox.contracts.events import Events
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.manifest.declarations.options import Options
from agentbox.mesh.client.client import Client
from agentbox.mesh.client.host_connection import HostConnection
from agentbox.mesh.client.instance import load_or_create
from agentbox.mesh.client.session import BoxFacts
from agentbox.mesh.client.session_slots import SessionSlots
from agentbox.mesh.metrics import ClientMetrics
from agentbox.plan.model import Plan
from agentbox.policy.outgoing import Outgoing

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from agentbox.mesh.outbox.outbox import Outbox


def make_mesh_client(
    plans: PlanSource,
    paths: Paths,
    boot: BootFacts,
    slots: Slots,
    evaluator: Evaluator,
    outbox: "Outbox | None",
    registry: "CollectorRegistry",
) -> Client:
    """Raises AgentboxError when the identity of this box cannot be read or created."""
    plan, mesh = plans.current, plans.current.mesh
    instance = load_or_create(paths.slot("mesh"))
    ca_file = mesh.ca_file
    connection = HostConnection(
        mesh.host_url,
        enrolment_token(plan, paths),
        timeout=mesh.connect_timeout_seconds,
        ca_file=paths.resolve(ca_file) if ca_file else None,
        outgoing=Outgoing.read(paths),
    )
    session_slots = SessionSlots(
        lambda: _configs(plans.current, paths),
        slots,
        host_url=connection.url,
        ca_file=ca_file,
        box_name=box_principal(instance.id),
    )
    return Client(
        instance,
        connection,
        session_slots,
        _box_facts(plans, boot, slots, evaluator, outbox),
        ClientMetrics(registry),
        slots.journal.record_soon,
        on_reconnect=outbox.wake if outbox else lambda: None,
        wait_drained=outbox.wait_drained if outbox else _skip_drain,
        scale=clock_scale(plan, boot),
    )


async def _skip_drain(_seconds: float) -> None:
    """Beads are local: no results are queued."""


def _configs(plan: Plan, paths: Paths) -> Mapping[SlotName, SlotConfig[Options]]:
    return {
        slot: slot_config(plan, paths, slot, slot_secrets(paths, plan.slots[slot].options))
        for slot in SLOTS
    }


def _box_facts(
    plans: PlanSource,
    boot: BootFacts,
    slots: Slots,
    evaluator: Evaluator,
    outbox: "Outbox | None",
) -> BoxFacts:
    plan = plans.current
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
        return outbox.status() if outbox else {}

    async def heartbeat() -> dict[str, Any]:
        health = {str(slot): row.state for slot, row in slots.status().items()}
        return {
            "health": health,
            "ready": evaluator.verdict.ready,
            "journal": await _head(slots.events),
            "outbox": outbox_status(),
        }

    return BoxFacts(
        boot_id=boot.boot_id or uuid7(),
        registration=registration,
        heartbeat=heartbeat,
        outbox=outbox_status,
    )


async def _head(events: Events) -> dict[str, Any]:
    """Empty while the journal is unavailable."""
    try:
        seq, digest = await events.head()
    except AdapterError:
        return {}
    return {"seq": seq, "hash": digest}
