"""Manifest drift: the mounted manifest against the one the image was built from.

Equal bytes were validated at build, and nothing but the standard library is imported. Other bytes are validated,
planned and rendered here, and the keys that differ decide by their apply class.
"""

from collections.abc import Sequence

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.supervision.boot_record import Drifted
from agentbox.core.canonical import digest
from agentbox.plan.drift import Drift, drift
from agentbox.plan.model import Plan

CONTAINER = "container"
_UP = "Run `agentbox up`: it builds or recreates what this manifest needs."


def settle(context: Context) -> None:
    """Decides which plan is in force. Raises BootError for a manifest that this image cannot serve."""
    mounted = context.paths.manifest
    data = mounted.read_bytes() if mounted.exists() else None
    if data is not None and digest(data) != context.baked.digests.manifest:
        _take_mounted(context, data)
    else:
        _check_environment(context)
        _compare_with_compose(context, context.baked, Drift())


def _take_mounted(context: Context, data: bytes) -> None:
    from agentbox.box.boot.rerender import install, make  # imports the manifest, the rules and the renderers

    plan = make(context, data)
    changes = drift(context.baked.apply, plan.apply)
    if changes.rebuild:
        _tell(context, changes.rebuild, "rebuild", level="error")
        raise BootError(
            f"cannot boot this image with the mounted manifest: {', '.join(changes.rebuild)} need another image", _UP
        )
    if changes.recreate and context.env.get("AGENTBOX_PLAN_DIGEST") != plan.digest:
        _tell(context, changes.recreate, "recreate", level="warn")
        context.stale = (_stale(context, plan, changes.recreate),)
        if context.strict:
            raise BootError(f"cannot go on in strict mode: {', '.join(changes.recreate)} need a new container", _UP)
    for name in ("boot", "live"):
        if keys := getattr(changes, name):
            _tell(context, keys, name, level="info")
    _compare_with_compose(context, plan, changes)
    install(context, plan)


def _stale(context: Context, plan: Plan, keys: Sequence[str]) -> Drifted:
    """Holds as long as this container lives: only a new one is made as the mounted manifest says."""
    rendered = context.env.get("AGENTBOX_PLAN_DIGEST", "") or "no plan"
    return Drifted(CONTAINER, plan.digest, f"made for {rendered}: {', '.join(keys)} need a new one")


def _tell(context: Context, keys: Sequence[str], name: str, *, level: str) -> None:
    context.emit("ManifestDrift", level=level, keys=list(keys), source="manifest", **{"class": name})


def _compare_with_compose(context: Context, plan: Plan, changes: Drift) -> None:
    """Compose was rendered from another manifest, yet no key needs more than this boot: information only."""
    rendered = context.env.get("AGENTBOX_PLAN_DIGEST", "")
    if rendered and rendered != plan.digest and not (changes.rebuild or changes.recreate):
        context.emit("ManifestDrift", level="info", keys=[], source="compose", **{"class": ""})


def _check_environment(context: Context) -> None:
    """The rules marked [env] run again, where the plan needs a credential besides the API's own token."""
    if _needs_credentials(context.baked):
        from agentbox.box.boot.rerender import check_environment

        check_environment(context)


def _needs_credentials(plan: Plan) -> bool:
    external = any(slot.use.startswith("external") for slot in plan.slots.values())
    return external or plan.mesh.get("mode", "standalone") != "standalone"
