"""Baseline plus exceptions: a union, by value or by target. Nothing here can remove, shrink or weaken anything.

Two steps: the deltas become one, whatever their order; that one is laid over the baseline, whose own rows keep what they
restrict. What a delta asks against the baseline is refused, never dropped in silence. Standard library only: the boot
compares the box with the result.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from agentbox.plan.errors import PlanError
from agentbox.plan.model import Delta, Device, Plan, Tmpfs, Volume
from agentbox.policy.protected_paths import at_or_below, undone

_V = TypeVar("_V", bound=Hashable)
_R = TypeVar("_R", Tmpfs, Volume)

UID = GID = 1000
DEFAULT_SECCOMP = "agentbox"
_ADDS = "an exception adds, it never undoes: name another place or the narrower field"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What a box is granted and denied. The denials have no key in any manifest and no field in a delta."""

    tmpfs: tuple[Tmpfs, ...]
    volumes: tuple[Volume, ...]
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


def baseline(plan: Plan) -> Profile:
    """The profile of every box, before its exceptions."""
    return Profile(tmpfs=plan.tmpfs, volumes=plan.volumes)


def effective(plan: Plan) -> Profile:
    """The profile that this plan gives its box. Raises PlanError."""
    return merge(baseline(plan), plan.exceptions)


def merge(base: Profile, deltas: Iterable[Delta]) -> Profile:
    """A superset of `base`: its rows come first and stay as they are, save that a tmpfs may grow; what is added follows,
    sorted. User, root, dropped capabilities and no-new-privileges are carried over untouched. The order of the deltas
    does not count, and merging them again changes nothing. A seccomp file replaces the list by name, as engines do.

    Raises PlanError for deltas that contradict each other, and for one that would undo what the baseline holds.
    """
    rows = tuple(deltas)
    tmpfs = _by_target((row for delta in rows for row in delta.tmpfs), _joined_tmpfs)
    volumes = _by_target((row for delta in rows for row in delta.volumes), _joined_volume)
    capabilities = _values(row for delta in rows for row in delta.cap_add)
    _refuse_undoing(base, tmpfs, volumes, capabilities)
    return replace(
        base,
        tmpfs=_laid_over(base.tmpfs, tmpfs, _grown),
        volumes=_laid_over(base.volumes, volumes, _same_source),
        devices=_united(base.devices, _values(row for delta in rows for row in delta.devices)),
        group_add=_united(base.group_add, _values(row for delta in rows for row in delta.group_add)),
        cap_add=_united(base.cap_add, capabilities),
        device_requests=_united(base.device_requests, _requests(rows)),
        runtime=_one("runtime", [base.runtime, *(delta.runtime for delta in rows)], ""),
        seccomp=_one("seccomp", [base.seccomp, *(delta.seccomp for delta in rows)], DEFAULT_SECCOMP),
    )


def _values(rows: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(rows)))


def _requests(deltas: Iterable[Delta]) -> tuple[Device, ...]:
    found = {row for delta in deltas for row in delta.device_requests}
    return tuple(sorted(found, key=lambda row: (row.driver, row.count, row.capabilities)))


def _united(base: tuple[_V, ...], added: tuple[_V, ...]) -> tuple[_V, ...]:
    return (*base, *(row for row in added if row not in base))


def _one(name: str, wanted: Iterable[str], neutral: str) -> str:
    """The only value that is asked for beside the neutral one."""
    asked = sorted({value for value in wanted if value} - {neutral})
    if len(asked) > 1:
        raise PlanError(
            f"cannot merge security exceptions: one wants {name} {asked[0]!r}, another {asked[1]!r}",
            f"give both the same {name}",
        )
    return asked[0] if asked else neutral


def _by_target(rows: Iterable[_R], join: Callable[[_R, _R], _R]) -> tuple[_R, ...]:
    """One row a target, sorted by it."""
    found: dict[str, _R] = {}
    for row in rows:
        found[row.target] = join(found[row.target], row) if row.target in found else row
    return tuple(found[target] for target in sorted(found))


def _laid_over(base: tuple[_R, ...], added: tuple[_R, ...], join: Callable[[_R, _R], _R]) -> tuple[_R, ...]:
    """The rows of `base`, each joined with what is added at its target, then the others."""
    wanted = {row.target: row for row in added}
    held = {row.target for row in base}
    kept = [join(row, wanted[row.target]) if row.target in wanted else row for row in base]
    return tuple(kept + [row for row in added if row.target not in held])


def _joined_tmpfs(one: Tmpfs, other: Tmpfs) -> Tmpfs:
    """Of two exceptions: the larger size, the bits of both modes, executable if either is."""
    mode = f"{int(one.mode, 8) | int(other.mode, 8):04o}"
    return replace(one, size=max(one.size, other.size), mode=mode, exec=one.exec or other.exec)


def _joined_volume(one: Volume, other: Volume) -> Volume:
    """Of two exceptions: writable if either is. Raises PlanError for two sources."""
    if one.source != other.source:
        first, second = sorted((one.source, other.source))
        raise PlanError(
            f"cannot mount {second} at {one.target}: {first} is mounted there", "give the volume another target"
        )
    return replace(one, read_only=one.read_only and other.read_only)


def _grown(base: Tmpfs, wanted: Tmpfs) -> Tmpfs:
    """The baseline's mount with the larger size. Raises PlanError where programs are to run from a place that forbids it."""
    if wanted.exec and not base.exec:
        raise PlanError(f"cannot let programs run from {base.target}: the baseline mounts it noexec", _ADDS)
    return replace(base, size=max(base.size, wanted.size))


def _same_source(base: Volume, wanted: Volume) -> Volume:
    """The baseline's volume. Raises PlanError for another source, or for writes to what the baseline mounts read-only."""
    _joined_volume(base, wanted)
    if base.read_only and not wanted.read_only:
        raise PlanError(f"cannot make {base.target} writable: the baseline mounts it read-only", _ADDS)
    return base


def _refuse_undoing(
    base: Profile, tmpfs: tuple[Tmpfs, ...], volumes: tuple[Volume, ...], cap_add: tuple[str, ...]
) -> None:
    for _field, what in undone(cap_add=cap_add, tmpfs=tmpfs, volumes=volumes):
        raise PlanError(f"cannot merge a security exception that {what}", _ADDS)
    held = {row.target: "a volume" for row in base.volumes} | {row.target: "a tmpfs" for row in base.tmpfs}
    taken = dict(held)
    for kind, targets in (("a tmpfs", [row.target for row in tmpfs]), ("a volume", [row.target for row in volumes])):
        for target in targets:
            if taken.setdefault(target, kind) != kind:
                raise PlanError(f"cannot mount {kind} at {target}: {taken[target]} is mounted there", _ADDS)
            below = sorted(other for other in held if at_or_below(other, target))
            if below and target not in held:
                raise PlanError(f"cannot mount {kind} at {target}: it would cover {below[0]}", _ADDS)
