"""Merges the baseline with exceptions, by value or by target. Nothing can be removed, reduced or
weakened. First the exceptions are combined, in any order; then they are laid over the baseline,
whose own rows keep their restrictions. What an exception requests against the baseline is rejected,
never ignored. Standard library only: the boot compares the box with the result.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import TypeVar

from agentbox.core.frozen import frozen
from agentbox.plan.errors import PlanError
from agentbox.plan.model import Device, Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.policy.protected_paths import baseline_violations, is_at_or_below

_V = TypeVar("_V", bound=Hashable)
_R = TypeVar("_R", TmpfsPlan, VolumePlan)

UID = GID = 1000
DEFAULT_SECCOMP = "agentbox"
_HINT = "choose another path or the narrower field: an exception adds, it never removes"


@frozen
class ContainerProfile:
    """What a box is granted and denied. The denials have no key in a manifest and no field in an
    exception.
    """

    tmpfs: tuple[TmpfsPlan, ...]
    volumes: tuple[VolumePlan, ...]
    devices: tuple[str, ...] = ()
    group_add: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    device_requests: tuple[Device, ...] = ()
    runtime: str = ""
    seccomp: str = DEFAULT_SECCOMP
    user: str = f"{UID}:{GID}"
    read_only: bool = True
    cap_drop: tuple[str, ...] = ("ALL",)
    no_new_privileges: bool = True
    privileged: bool = False


def baseline(plan: Plan) -> ContainerProfile:
    """The profile of every box, without exceptions."""
    return ContainerProfile(tmpfs=plan.tmpfs, volumes=plan.volumes)


def effective_profile(plan: Plan) -> ContainerProfile:
    """The profile of a box with this plan. Raises PlanError."""
    return merge(baseline(plan), plan.exceptions)


def merge(base: ContainerProfile, deltas: Iterable[SecurityExceptionPlan]) -> ContainerProfile:
    """A superset of `base`: its rows come first, unchanged except for larger tmpfs; additions
    follow, sorted. User, root, dropped capabilities and no-new-privileges are unchanged. The result
    does not depend on the order of the deltas, and is idempotent. A seccomp file replaces the
    profile by name, as in engines. Raises PlanError for conflicting deltas, and for one that would
    weaken the baseline.
    """
    rows = tuple(deltas)
    tmpfs = _by_target((row for delta in rows for row in delta.tmpfs), _join_tmpfs)
    volumes = _by_target((row for delta in rows for row in delta.volumes), _join_volume)
    capabilities = _values(row for delta in rows for row in delta.cap_add)
    _check_additive(base, tmpfs, volumes, capabilities)
    return replace(
        base,
        tmpfs=_overlay(base.tmpfs, tmpfs, _grow_tmpfs),
        volumes=_overlay(base.volumes, volumes, _check_volume),
        devices=_union(base.devices, _values(row for delta in rows for row in delta.devices)),
        group_add=_union(base.group_add, _values(row for delta in rows for row in delta.group_add)),
        cap_add=_union(base.cap_add, capabilities),
        device_requests=_union(base.device_requests, _requests(rows)),
        runtime=_single_value("runtime", [base.runtime, *(delta.runtime for delta in rows)], ""),
        seccomp=_single_value(
            "seccomp", [base.seccomp, *(delta.seccomp for delta in rows)], DEFAULT_SECCOMP
        ),
    )


def _values(rows: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(rows)))


def _requests(deltas: Iterable[SecurityExceptionPlan]) -> tuple[Device, ...]:
    requests = {row for delta in deltas for row in delta.device_requests}
    return tuple(sorted(requests, key=lambda row: (row.driver, row.count, row.capabilities)))


def _union(base: tuple[_V, ...], added: tuple[_V, ...]) -> tuple[_V, ...]:
    return (*base, *(row for row in added if row not in base))


def _single_value(name: str, values: Iterable[str], default: str) -> str:
    """The only value besides the default."""
    distinct = sorted({value for value in values if value} - {default})
    if len(distinct) > 1:
        raise PlanError(
            f"cannot merge security exceptions: one requires {name} {distinct[0]!r}, another "
            f"{distinct[1]!r}",
            f"give both the same {name}",
        )
    return distinct[0] if distinct else default


def _by_target(rows: Iterable[_R], join: Callable[[_R, _R], _R]) -> tuple[_R, ...]:
    """One row per target, sorted."""
    merged: dict[str, _R] = {}
    for row in rows:
        merged[row.target] = join(merged[row.target], row) if row.target in merged else row
    return tuple(merged[target] for target in sorted(merged))


def _overlay(
    base: tuple[_R, ...], added: tuple[_R, ...], join: Callable[[_R, _R], _R]
) -> tuple[_R, ...]:
    """The rows of `base`, each joined with the addition at its target, then the other additions."""
    by_target = {row.target: row for row in added}
    targets = {row.target for row in base}
    merged = [join(row, by_target[row.target]) if row.target in by_target else row for row in base]
    return tuple(merged + [row for row in added if row.target not in targets])


def _join_tmpfs(base: TmpfsPlan, added: TmpfsPlan) -> TmpfsPlan:
    """Of two exceptions: the larger size, the bits of both modes, executable if either is."""
    mode = f"{int(base.mode, 8) | int(added.mode, 8):04o}"
    return replace(base, size=max(base.size, added.size), mode=mode, exec=base.exec or added.exec)


def _join_volume(base: VolumePlan, added: VolumePlan) -> VolumePlan:
    """Of two exceptions: writable if either is. Raises PlanError for different sources."""
    if base.source != added.source:
        first, second = sorted((base.source, added.source))
        raise PlanError(
            f"cannot mount {second} at {base.target}: {first} is mounted there",
            "give the volume another target",
        )
    return replace(base, read_only=base.read_only and added.read_only)


def _grow_tmpfs(base: TmpfsPlan, added: TmpfsPlan) -> TmpfsPlan:
    """The baseline's mount with the larger size. Raises PlanError for exec on a noexec mount."""
    if added.exec and not base.exec:
        raise PlanError(
            f"cannot let programs run from {base.target}: the baseline mounts it noexec", _HINT
        )
    return replace(base, size=max(base.size, added.size))


def _check_volume(base: VolumePlan, added: VolumePlan) -> VolumePlan:
    """The baseline's volume. Raises PlanError for a different source, or for writes to a read-only
    volume.
    """
    _join_volume(base, added)
    if base.read_only and not added.read_only:
        raise PlanError(
            f"cannot make {base.target} writable: the baseline mounts it read-only", _HINT
        )
    return base


def _check_additive(
    base: ContainerProfile,
    tmpfs: tuple[TmpfsPlan, ...],
    volumes: tuple[VolumePlan, ...],
    cap_add: tuple[str, ...],
) -> None:
    for _field, violation in baseline_violations(cap_add=cap_add, tmpfs=tmpfs, volumes=volumes):
        raise PlanError(f"cannot merge a security exception that {violation}", _HINT)
    mounted = {row.target: "a volume" for row in base.volumes} | {
        row.target: "a tmpfs" for row in base.tmpfs
    }
    occupied = dict(mounted)
    for kind, targets in (
        ("a tmpfs", [row.target for row in tmpfs]),
        ("a volume", [row.target for row in volumes]),
    ):
        for target in targets:
            if occupied.setdefault(target, kind) != kind:
                raise PlanError(
                    f"cannot mount {kind} at {target}: {occupied[target]} is mounted there", _HINT
                )
            covered = sorted(other for other in mounted if is_at_or_below(other, target))
            if covered and target not in mounted:
                raise PlanError(
                    f"cannot mount {kind} at {target}: it would cover {covered[0]}", _HINT
                )
