"""A client of a mesh, put together from the parts of a running API."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbox.adapters.runtime.adapter import SLOTS, SlotConfig, SlotName, slot_config
from agentbox.adapters.runtime.registry import resolve
from agentbox.api.mesh.membership import box_principal, clock_scale, enrolment_token
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError
from agentbox.mesh.client.client import Client
from agentbox.mesh.client.given_slots import GivenSlots
from agentbox.mesh.client.held import Facts
from agentbox.mesh.client.instance import instance_of
from agentbox.mesh.client.link import Link
from agentbox.mesh.metrics import ClientMetrics

if TYPE_CHECKING:
    from agentbox.api.services import Services


def client_of(services: "Services") -> Client:
    """Raises AgentboxError when the identity of this box cannot be read or made."""
    mesh, paths = services.plan.mesh, services.paths
    instance = instance_of(paths.slot("mesh"))
    ca_file = str(mesh.get("ca_file", ""))
    link = Link(
        str(mesh["host_url"]), enrolment_token(services.plan, paths), seconds=float(mesh["connect_timeout_seconds"]),
        authority=paths.at(ca_file) if ca_file else None,
    )  # fmt: skip
    slots = GivenSlots(
        lambda: _configs(services),
        services.container,
        host_url=link.url,
        ca_file=ca_file,
        names=box_principal(instance.id),
    )
    return Client(
        instance, link, slots, _facts(services), ClientMetrics(services.registry), services.container.journal.record_soon,
        came_back=services.outbox.wake if services.outbox else lambda: None,
        drained=services.outbox.drained if services.outbox else _nothing, scale=clock_scale(services.plan, services.boot),
    )  # fmt: skip


async def _nothing(_seconds: float) -> None:
    """Beads of this box are its own: no result waits for anybody."""


def _configs(services: "Services") -> Mapping[SlotName, SlotConfig]:
    plan, paths = services.plan, services.paths
    return {slot: slot_config(plan, paths, slot, slot_secrets(paths, plan.slots[slot].options)) for slot in SLOTS}


def _facts(services: "Services") -> Facts:
    boot, plan = services.boot, services.plan
    impls = {str(slot): plan.slots[slot].use for slot in SLOTS}

    def registration() -> dict[str, Any]:
        return {
            "image_hash": boot.digests.get("image") or "", "plan_digest": boot.plan_digest,
            "posture_digest": boot.posture_digest, "impls": impls, "api_base": plan.api.public_base,
            "contracts": {slot: resolve(slot, use).contract_version for slot, use in impls.items()},  # type: ignore[arg-type]
        }  # fmt: skip

    def told() -> dict[str, Any]:
        return services.outbox.told() if services.outbox else {}

    async def beat() -> dict[str, Any]:
        health = {str(slot): row.state for slot, row in services.container.status().items()}
        return {
            "health": health,
            "ready": services.evaluator.verdict.ready,
            "journal": await _head(services),
            "outbox": told(),
        }

    return Facts(boot_id=boot.boot_id or uuid7(), registration=registration, beat=beat, outbox=told)


async def _head(services: "Services") -> dict[str, Any]:
    """Empty while the journal cannot say it."""
    try:
        seq, digest = await services.container.events.head()
    except AdapterError:
        return {}
    return {"seq": seq, "hash": digest}
