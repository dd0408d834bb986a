"""`POST /v1/config/apply`: live keys of the mounted manifest, taken over without a restart."""

import asyncio
from typing import TYPE_CHECKING

from agentbox.adapters.runtime.adapter import SLOTS, SlotConfig, SlotName, slot_config
from agentbox.box.supervision.applied import keep
from agentbox.box.supervision.secrets import visible_environment
from agentbox.box.supervision.slot_secrets import slot_secrets
from agentbox.contracts.bodies import Applied
from agentbox.core import paths as settings
from agentbox.core.errors import AgentboxError
from agentbox.core.http.problems import Conflict
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, BackendError, ValidationError
from agentbox.plan.drift import Drift, drift
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from agentbox.api.services import Services


async def apply_mounted(services: "Services") -> Applied:
    """What changed, by class. Raises ValidationError for a manifest with findings, Conflict (409) when a key needs more
    than live, BackendError for one that cannot be read; then nothing has changed."""
    try:
        plan = await asyncio.to_thread(plan_of_mounted, services.paths, services.plan)
    except AdapterError:
        raise
    except (AgentboxError, OSError) as error:
        why = error.message if isinstance(error, AgentboxError) else f"{error.filename}: {error.strerror}"
        raise BackendError(f"cannot apply the manifest in place: {why}", slot="config", impl="apply") from error
    found = drift(services.plan.apply, plan.apply)
    if found.worst not in ("", "live"):
        raise Conflict(
            f"cannot apply the manifest in place: {found.worst} keys changed", hint="agentbox up takes them over",
            keys={name: list(getattr(found, name)) for name in ("live", "boot", "recreate", "rebuild")},
        )  # fmt: skip
    await asyncio.to_thread(_remember, services.paths, plan)
    for slot in SLOTS:
        old, new = (_config(one, services.paths, slot) for one in (services.plan, plan))
        if old != new:
            services.container.reconfigure(slot, services.mesh.overlay(new))
    services.plan = plan
    services.tasks.hold(plan)
    services.drift.wake()
    return _applied(found)


def _config(plan: Plan, paths: Paths, slot: SlotName) -> SlotConfig:
    return slot_config(plan, paths, slot, slot_secrets(paths, plan.slots[slot].options))


def _remember(paths: Paths, plan: Plan) -> None:
    """For an API that is started again in this boot. Raises BackendError where there is no room."""
    try:
        keep(paths, plan)
    except OSError as error:
        raise BackendError(
            f"cannot apply the manifest in place: {paths.applied_plan.parent} takes no file ({error.strerror})",
            hint="make room there; nothing was changed", slot="config", impl="apply",
        ) from error  # fmt: skip


def plan_of_mounted(paths: Paths, current: Plan) -> Plan:
    """The plan that the mounted manifest means now. Raises ValidationError with its findings."""
    from agentbox.manifest.features.loader import load_features
    from agentbox.manifest.load import load
    from agentbox.manifest.rules.engine import run  # a manifest is rarely applied, and reading one costs start time
    from agentbox.plan.build import make_plan
    from agentbox.plan.lockfile.reader import read

    parsed, known = load(paths.manifest), load_features()
    environment = visible_environment(paths, settings.environment())
    findings = [*parsed.findings, *run(parsed, features=known, environment=environment).findings]
    if errors := [found for found in findings if found.severity == "error"]:
        rows = [{"pointer": found.key, "detail": f"{found.code} {found.message}"} for found in errors]
        raise ValidationError(f"cannot apply {paths.manifest.name}: {len(rows)} findings", errors=rows)
    lock = paths.lock.read_bytes()
    return make_plan(parsed, known, lock, read(lock), current.system, test_hooks=current.test_hooks)


def _applied(found: Drift) -> Applied:
    return Applied(live=found.live, boot=found.boot, recreate=found.recreate, rebuild=found.rebuild)
