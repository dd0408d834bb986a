"""Baseline plus exceptions: a union, by value or by target. Nothing here can remove or shrink anything."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from agentbox.plan.errors import PlanError
from agentbox.plan.model import Delta, Device, Plan, Tmpfs, Volume

_T = TypeVar("_T", bound=Hashable)

UID = GID = 1000
DEFAULT_SECCOMP = "agentbox"


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
    """The profile that this plan gives its box."""
    return merge(baseline(plan), plan.exceptions)


def merge(base: Profile, deltas: Iterable[Delta]) -> Profile:
    """A superset of `base`: every grant in it stays, and user, root, dropped capabilities and no-new-privileges are
    carried over untouched. Deltas apply in name order. A seccomp file replaces the list by name, as engines do.

    Raises PlanError when two deltas want different runtimes or seccomp files, or mount different sources at one target.
    """
    for delta in sorted(deltas, key=lambda delta: delta.key):
        base = replace(
            base,
            tmpfs=union_tmpfs(base.tmpfs, delta.tmpfs),
            volumes=union_volumes(base.volumes, delta.volumes),
            devices=union_values(base.devices, delta.devices),
            group_add=union_values(base.group_add, delta.group_add),
            cap_add=union_values(base.cap_add, delta.cap_add),
            device_requests=union_values(base.device_requests, delta.device_requests),
            runtime=_one("runtime", base.runtime, delta.runtime, Profile.runtime),
            seccomp=_one("seccomp", base.seccomp, delta.seccomp, DEFAULT_SECCOMP),
        )
    return base


def _one(name: str, now: str, wanted: str, neutral: str) -> str:
    """The wanted value, unless something else was asked for before."""
    if wanted and now not in (neutral, wanted):
        raise PlanError(
            f"cannot merge security exceptions: one wants {name} {now!r}, another {wanted!r}",
            f"give both the same {name}",
        )
    return wanted or now


def union_values(one: tuple[_T, ...], other: tuple[_T, ...]) -> tuple[_T, ...]:
    """Both, in order of first appearance, no repeats."""
    return tuple(dict.fromkeys((*one, *other)))


def union_tmpfs(one: tuple[Tmpfs, ...], other: tuple[Tmpfs, ...]) -> tuple[Tmpfs, ...]:
    """By target: the larger size, executable if either is; the mode of the first, for it may be relied on."""
    rows = {row.target: row for row in one}
    for row in other:
        first = rows.setdefault(row.target, row)
        rows[row.target] = replace(first, size=max(first.size, row.size), exec=first.exec or row.exec)
    return tuple(rows.values())


def union_volumes(one: tuple[Volume, ...], other: tuple[Volume, ...]) -> tuple[Volume, ...]:
    """By target; writable if either is. Raises PlanError when two sources want the same target."""
    rows = {row.target: row for row in one}
    for row in other:
        first = rows.setdefault(row.target, row)
        if first.source != row.source:
            raise PlanError(
                f"cannot mount {row.source} at {row.target}: {first.source} is mounted there",
                "give the volume another target",
            )
        rows[row.target] = replace(first, read_only=first.read_only and row.read_only)
    return tuple(rows.values())
