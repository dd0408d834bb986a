"""The active exceptions of a manifest as records of the plan."""

from collections.abc import Mapping

from agentbox.manifest.features.exceptions import active, effective_delta, gates_on, inheritance_fault
from agentbox.manifest.features.model import Feature
from agentbox.manifest.model import Model
from agentbox.plan.errors import PlanError
from agentbox.plan.model import Delta, Device, Tmpfs, Volume


def deltas(model: Model, features: Mapping[str, Feature], on: tuple[str, ...]) -> tuple[Delta, ...]:
    """In name order: those whose block is written and whose gate is on, with what they inherit. Raises PlanError for
    one that inherits itself, or from one whose gate is off."""
    found = []
    gated = gates_on(features, on)
    for key in active(model, features, on):
        if fault := inheritance_fault(model, key, gated):
            raise PlanError(f"cannot plan the security exception {key}: {fault}", "see agentbox config explain E205")
        row = effective_delta(model, key)
        written = model.security.exceptions[key]
        found.append(
            Delta(
                key=key,
                reason=written.reason or row.reason,
                tmpfs=tuple(
                    Tmpfs(target=t.target, size=t.size.bytes, mode=t.mode.zfill(4), exec=t.exec) for t in row.tmpfs
                ),
                volumes=tuple(Volume(source=v.source, target=v.target, read_only=v.read_only) for v in row.volumes),
                devices=row.devices,
                group_add=row.group_add,
                cap_add=row.cap_add,
                device_requests=tuple(
                    Device(driver=d.driver, count=d.count, capabilities=d.capabilities) for d in row.device_requests
                ),
                runtime=row.runtime,
                seccomp=row.seccomp,
            )
        )
    return tuple(found)
