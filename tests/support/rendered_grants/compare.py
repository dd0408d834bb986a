"""grants(target) ⊆ grants(plan), and the closed list of restrictions that a target cannot
express.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from support.rendered_grants.model import LIMITS, UNBOUNDED, ExcessGrant, GrantedMount, Grants

LABELLED = "labelled pods"
"""Who may connect to a port of a pod whose NetworkPolicy selects labels."""


@dataclass(frozen=True)
class Waiver:
    """A restriction that a target cannot express, and what compensates for it."""

    kind: str
    detail: str  # pattern of the whole detail
    compensation: str


INEXPRESSIBLE: Mapping[str, tuple[Waiver, ...]] = {
    "compose": (),
    "devcontainer": (),
    "podman": (),
    "kubernetes": (
        Waiver("tmpfs.exec", ".*", "no rule of an agent allows execution there"),
        Waiver("tmpfs.suid", ".*", "no_new_privs; the image holds no setuid file"),
        Waiver("tmpfs.dev", ".*", "no capability to create a device, and the device cgroup"),
        Waiver("limit.pids", ".*", "the node's podPidsLimit; each agent has its own limit"),
        Waiver("limit.nofile", ".*", "the boot lowers RLIMIT_NOFILE"),
        Waiver("limit.core", ".*", "the boot lowers RLIMIT_CORE to 0"),
        Waiver("limit.restarts", ".*", "the kubelet's restart delay increases up to five minutes"),
        Waiver(
            "port.address",
            f"{LABELLED}:.*",
            "NetworkPolicy: pods of the same namespace with the label",
        ),
    ),
}


def excess(actual: Grants, allowed: Grants) -> tuple[ExcessGrant, ...]:
    """Return everything in `actual` that exceeds `allowed`; empty if it is a subset."""
    return (
        *_confinement(actual, allowed),
        *_sets(actual, allowed),
        *_mounts(actual, allowed),
        *_limits(actual, allowed),
    )


def unwaived(target: str, actual: Grants, allowed: Grants) -> tuple[ExcessGrant, ...]:
    """Return the excess that no waiver of the target covers."""
    return tuple(
        row
        for row in excess(actual, allowed)
        if not any(_waives(waiver, row) for waiver in INEXPRESSIBLE[target])
    )


def unused_waivers(target: str, actual: Grants, allowed: Grants) -> tuple[Waiver, ...]:
    """Return waivers of the target that match no excess."""
    rows = excess(actual, allowed)
    return tuple(
        waiver for waiver in INEXPRESSIBLE[target] if not any(_waives(waiver, row) for row in rows)
    )


def _waives(waiver: Waiver, row: ExcessGrant) -> bool:
    return waiver.kind == row.kind and re.fullmatch(waiver.detail, row.detail) is not None


def _confinement(actual: Grants, allowed: Grants) -> Iterator[ExcessGrant]:
    for kind in ("user", "seccomp"):
        if getattr(actual, kind) != getattr(allowed, kind):
            yield ExcessGrant(kind, str(getattr(actual, kind)))
    if actual.runtime not in ("", allowed.runtime):
        yield ExcessGrant("runtime", actual.runtime)
    for kind in ("escalation", "privileged", "root_writable", "shared_network"):
        if getattr(actual, kind) and not getattr(allowed, kind):
            yield ExcessGrant(kind, "true")


def _sets(actual: Grants, allowed: Grants) -> Iterator[ExcessGrant]:
    names = {
        "capability": "capabilities",
        "device": "devices",
        "group": "groups",
        "environment": "environment",
        "secret": "secrets",
        "namespace": "host_namespaces",
    }
    for kind, name in names.items():
        yield from (
            ExcessGrant(kind, str(value))
            for value in sorted(getattr(actual, name) - getattr(allowed, name))
        )
    for driver, count in sorted(actual.requests.items()):
        if count > allowed.requests.get(driver, 0):
            yield ExcessGrant("device", f"{driver} x {count}")
    for peer, port in sorted(actual.ports - allowed.ports):
        is_known = any(number == port for _, number in allowed.ports)
        yield ExcessGrant("port.address" if is_known else "port", f"{peer}:{port}")


def _mounts(actual: Grants, allowed: Grants) -> Iterator[ExcessGrant]:
    allowed_mounts = {row.target: row for row in allowed.mounts}
    seen: set[str] = set()
    for row in actual.mounts:
        if row.target in seen or row.target not in allowed_mounts:
            yield ExcessGrant("mount", f"{row.source} at {row.target}")
        else:
            yield from _mount(row, allowed_mounts[row.target])
        seen.add(row.target)


def _mount(row: GrantedMount, allowed: GrantedMount) -> Iterator[ExcessGrant]:
    if row.source != allowed.source:
        yield ExcessGrant("mount", f"{row.source} at {row.target}")
    kind = "tmpfs" if allowed.source == "tmpfs" else "mount"
    yield from (
        ExcessGrant(f"{kind}.{flag}", row.target) for flag in sorted(row.flags - allowed.flags)
    )
    if row.size > allowed.size:
        yield ExcessGrant(f"{kind}.size", row.target)


def _limits(actual: Grants, allowed: Grants) -> Iterator[ExcessGrant]:
    for name in LIMITS:
        if actual.limits.get(name, UNBOUNDED) > allowed.limits.get(name, UNBOUNDED):
            yield ExcessGrant(f"limit.{name}", str(actual.limits.get(name, "unbounded")))
