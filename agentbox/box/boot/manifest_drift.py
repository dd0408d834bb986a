"""Manifest drift: the mounted manifest compared with the one the image was built from.

Equal bytes were validated at build, so only the standard library is imported. Other bytes are
validated, planned and rendered here, and the changed keys decide by their apply class.
"""

from collections.abc import Sequence

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.supervision.boot_record import PostureDrift
from agentbox.core.canonical import digest
from agentbox.plan.drift import Drift, find_drift
from agentbox.plan.model import Plan

CONTAINER = "container"
_FIX = "Run `agentbox up`: it builds or recreates what this manifest needs."


def select_plan(context: Context) -> None:
    """Selects the plan in force. Raises BootError for a manifest that this image cannot serve."""
    mounted = context.paths.manifest
    data = mounted.read_bytes() if mounted.exists() else None
    if data is not None and digest(data) != context.baked.digests.manifest:
        _apply_mounted(context, data)
    else:
        _check_environment(context)
        _compare_with_compose(context, context.baked, Drift())


def _apply_mounted(context: Context, data: bytes) -> None:
    from agentbox.box.boot.rerender import (
        install,
        plan_from_bytes,
    )  # imports the manifest, the rules and the renderers

    plan = plan_from_bytes(context, data)
    changes = find_drift(context.baked.apply, plan.apply)
    if changes.rebuild:
        _emit_drift(context, changes.rebuild, "rebuild", level="error")
        raise BootError(
            "cannot boot this image with the mounted manifest: "
            f"{', '.join(changes.rebuild)} need another image",
            _FIX,
        )
    if changes.recreate and context.env.get("AGENTBOX_PLAN_DIGEST") != plan.digest:
        _emit_drift(context, changes.recreate, "recreate", level="warn")
        context.stale = (_stale_container(context, plan, changes.recreate),)
        if context.strict:
            raise BootError(
                "cannot continue in strict mode: "
                f"{', '.join(changes.recreate)} need a new container",
                _FIX,
            )
    for name in ("boot", "live"):
        if keys := getattr(changes, name):
            _emit_drift(context, keys, name, level="info")
    _compare_with_compose(context, plan, changes)
    install(context, plan)


def _stale_container(context: Context, plan: Plan, keys: Sequence[str]) -> PostureDrift:
    """Lasts as long as this container: only a new one is made for the mounted manifest."""
    rendered = context.env.get("AGENTBOX_PLAN_DIGEST", "") or "no plan"
    return PostureDrift(
        CONTAINER, plan.digest, f"made for {rendered}: {', '.join(keys)} need a new one"
    )


def _emit_drift(context: Context, keys: Sequence[str], name: str, *, level: str) -> None:
    context.emit(
        "ManifestDrift", level=level, keys=list(keys), source="manifest", **{"class": name}
    )


def _compare_with_compose(context: Context, plan: Plan, changes: Drift) -> None:
    """Compose was rendered from another manifest, but no key needs more than a boot: information
    only.
    """
    rendered = context.env.get("AGENTBOX_PLAN_DIGEST", "")
    if rendered and rendered != plan.digest and not (changes.rebuild or changes.recreate):
        context.emit("ManifestDrift", level="info", keys=[], source="compose", **{"class": ""})


def _check_environment(context: Context) -> None:
    """Runs the rules marked [env] again, where the plan needs a credential besides the API's own
    token.
    """
    if _needs_credentials(context.baked):
        from agentbox.box.boot.rerender import check_environment

        check_environment(context)


def _needs_credentials(plan: Plan) -> bool:
    external = any(slot.use.startswith("external") for slot in plan.slots.values())
    return external or plan.mesh.mode != "standalone"
