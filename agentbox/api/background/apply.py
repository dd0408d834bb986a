"""`POST /v1/config/apply`: applies live keys of the mounted manifest without a restart."""

import asyncio
from collections.abc import Callable

from agentbox.adapters.runtime.adapter import SLOTS, SlotConfig, SlotName, slot_config
from agentbox.adapters.runtime.slots import Slots
from agentbox.api.background.mounted_plan import build_mounted_plan
from agentbox.api.plan_source import PlanSource
from agentbox.box.supervision.applied_plan import store_applied
from agentbox.box.supervision.slot_credentials import slot_secrets
from agentbox.contracts.box import Applied
from agentbox.core.errors import AgentboxError
from agentbox.core.http.problems import Conflict
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, BackendError
from agentbox.manifest.declarations.options import Options
from agentbox.plan.drift import Drift, find_drift
from agentbox.plan.model import Plan


class ManifestApplier:
    """Puts the mounted manifest in force, for keys that are live."""

    def __init__(
        self,
        paths: Paths,
        plans: PlanSource,
        slots: Slots,
        overlay: Callable[[SlotConfig[Options]], SlotConfig[Options]],
    ) -> None:
        """`overlay` completes the configuration of a slot with the values of a mesh session."""
        self._paths, self._plans, self._slots, self._overlay = paths, plans, slots, overlay

    async def apply(self) -> Applied:
        """The changes by class. Raises ValidationError for a manifest with findings, Conflict (409)
        when a key needs more than live, BackendError for an unreadable one; nothing has changed
        then.
        """
        old = self._plans.current
        new = await self._read_mounted(old)
        changes = find_drift(old.apply, new.apply)
        if changes.worst not in ("", "live"):
            raise Conflict(
                f"cannot apply the manifest in place: {changes.worst} keys changed",
                hint="run agentbox up to apply them",
                keys={
                    name: list(getattr(changes, name))
                    for name in ("live", "boot", "recreate", "rebuild")
                },
            )
        await asyncio.to_thread(_store_plan, self._paths, new)
        for slot in SLOTS:
            before, after = (
                _config(plan, self._paths, slot) for plan in (self._plans.current, new)
            )
            if before != after:
                self._slots.reconfigure(slot, self._overlay(after))
        self._plans.replace(new)
        return _applied(changes)

    async def _read_mounted(self, current: Plan) -> Plan:
        try:
            return await asyncio.to_thread(build_mounted_plan, self._paths, current)
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
