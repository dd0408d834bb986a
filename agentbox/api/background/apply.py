"""`POST /v1/config/apply`: applies live keys of the mounted manifest without a restart."""

import asyncio
from typing import TYPE_CHECKING

from agentbox.adapters.runtime.adapter import SLOTS, SlotConfig, SlotName, slot_config
from agentbox.api.background.mounted_plan import build_mounted_plan
from agentbox.box.supervision.applied_plan import store_applied
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.contracts.box import Applied
from agentbox.core.errors import AgentboxError
from agentbox.core.http.problems import Conflict
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, BackendError
from agentbox.manifest.declarations.options import Options
from agentbox.plan.drift import Drift, find_drift
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from agentbox.api.services import Services


async def apply_mounted(services: "Services") -> Applied:
    """The changes by class. Raises ValidationError for a manifest with findings, Conflict (409)
    when a key needs more than live, BackendError for an unreadable one; nothing has changed then.
    """
    try:
        plan = await asyncio.to_thread(build_mounted_plan, services.paths, services.plan)
    except AdapterError:
        raise
    except (AgentboxError, OSError) as error:
        reason = (
            error.message
            if isinstance(error, AgentboxError)
            else f"{error.filename}: {error.strerror}"
        )
        raise BackendError(
            f"cannot apply the manifest in place: {reason}", slot="config", impl="apply"
        ) from error
    changes = find_drift(services.plan.apply, plan.apply)
    if changes.worst not in ("", "live"):
        raise Conflict(
            f"cannot apply the manifest in place: {changes.worst} keys changed",
            hint="run agentbox up to apply them",
            keys={
                name: list(getattr(changes, name))
                for name in ("live", "boot", "recreate", "rebuild")
            },
        )
    await asyncio.to_thread(_store_plan, services.paths, plan)
    for slot in SLOTS:
        old, new = (_config(candidate, services.paths, slot) for candidate in (services.plan, plan))
        if old != new:
            services.slots.reconfigure(slot, services.mesh.overlay(new))
    services.plan = plan
    services.tasks.apply_plan(plan)
    services.drift.wake()
    return _applied(changes)


def _config(plan: Plan, paths: Paths, slot: SlotName) -> SlotConfig[Options]:
    return slot_config(plan, paths, slot, slot_secrets(paths, plan.slots[slot].options))


def _store_plan(paths: Paths, plan: Plan) -> None:
    """Stores the plan for an API restart in this boot. Raises BackendError when the disk is
    full.
    """
    try:
        store_applied(paths, plan)
    except OSError as error:
        raise BackendError(
            "cannot apply the manifest in place: "
            f"{paths.applied_plan.parent} is not writable ({error.strerror})",
            hint="free space there; nothing was changed",
            slot="config",
            impl="apply",
        ) from error


def _applied(changes: Drift) -> Applied:
    return Applied(
        live=changes.live, boot=changes.boot, recreate=changes.recreate, rebuild=changes.rebuild
    )
