"""The active exceptions of a manifest as plan records."""

from collections.abc import Mapping

from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.security_exceptions import (
    active_keys,
    effective_delta,
    inheritance_error,
    open_gates,
)
from agentbox.manifest.model import Model
from agentbox.plan.errors import PlanError
from agentbox.plan.model import Device, SecurityExceptionPlan, TmpfsPlan, VolumePlan


def build_exceptions(
    model: Model, features: Mapping[str, Feature], enabled: tuple[str, ...]
) -> tuple[SecurityExceptionPlan, ...]:
    """In name order: exceptions with a block and an enabled gate, including inherited ones. Raises
    PlanError for one that inherits itself, or from one whose gate is off.
    """
    result = []
    gates = open_gates(features, enabled)
    for key in active_keys(model, features, enabled):
        if reason := inheritance_error(model, key, gates):
            raise PlanError(
                f"cannot plan the security exception {key}: {reason}",
                "see agentbox config explain E205",
            )
        row = effective_delta(model, key)
        block = model.security.exceptions[key]
        result.append(
            SecurityExceptionPlan(
                key=key,
                reason=block.reason or row.reason,
                tmpfs=tuple(
                    TmpfsPlan(target=t.target, size=int(t.size), mode=t.mode.zfill(4), exec=t.exec)
                    for t in row.tmpfs
                ),
                volumes=tuple(
                    VolumePlan(source=v.source, target=v.target, read_only=v.read_only)
                    for v in row.volumes
                ),
                devices=row.devices,
                group_add=row.group_add,
                cap_add=row.cap_add,
                device_requests=tuple(
                    Device(driver=d.driver, count=d.count, capabilities=d.capabilities)
                    for d in row.device_requests
                ),
                runtime=row.runtime,
                seccomp=row.seccomp,
            )
        )
    return tuple(result)
