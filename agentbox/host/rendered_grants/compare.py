"""grants(target) ⊆ grants(plan), and the closed list of what a target has no words for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentbox.host.rendered_grants.model import LIMITS, UNBOUNDED, Excess, Grants, Mount

LABELLED = "labelled pods"
"""Who may come to a port of a pod whose NetworkPolicy names labels."""


@dataclass(frozen=True)
class Waiver:
    """A restriction that a target cannot write, and what holds in its place."""

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
        Waiver("tmpfs.dev", ".*", "no capability to make a device, and the device cgroup"),
        Waiver("limit.pids", ".*", "the node's podPidsLimit; each agent has its own limit"),
        Waiver("limit.nofile", ".*", "the boot lowers RLIMIT_NOFILE"),
        Waiver("limit.core", ".*", "the boot lowers RLIMIT_CORE to 0"),
        Waiver("limit.restarts", ".*", "the kubelet waits longer each time, up to five minutes"),
        Waiver("port.address", f"{LABELLED}:.*", "NetworkPolicy: the pods of the same namespace that carry the label"),
    ),
}


def excess(found: Grants, allowed: Grants) -> tuple[Excess, ...]:
    """Everything in `found` that `allowed` does not hold, empty when it is a subset."""
    return (*_confinement(found, allowed), *_sets(found, allowed), *_mounts(found, allowed), *_limits(found, allowed))


def unexcused(target: str, found: Grants, allowed: Grants) -> tuple[Excess, ...]:
    """The same without what the target cannot express."""
    return tuple(row for row in excess(found, allowed) if not any(_waives(w, row) for w in INEXPRESSIBLE[target]))


def unused(target: str, found: Grants, allowed: Grants) -> tuple[Waiver, ...]:
    """Waivers of the target that nothing needs."""
    rows = excess(found, allowed)
    return tuple(waiver for waiver in INEXPRESSIBLE[target] if not any(_waives(waiver, row) for row in rows))


def _waives(waiver: Waiver, row: Excess) -> bool:
    return waiver.kind == row.kind and re.fullmatch(waiver.detail, row.detail) is not None


def _confinement(found: Grants, allowed: Grants) -> Iterator[Excess]:
    for kind in ("user", "seccomp"):
        if getattr(found, kind) != getattr(allowed, kind):
            yield Excess(kind, str(getattr(found, kind)))
    if found.runtime not in ("", allowed.runtime):
        yield Excess("runtime", found.runtime)
    for kind in ("escalation", "privileged", "root_writable", "shared_network"):
        if getattr(found, kind) and not getattr(allowed, kind):
            yield Excess(kind, "true")


def _sets(found: Grants, allowed: Grants) -> Iterator[Excess]:
    names = {
        "capability": "capabilities", "device": "devices", "group": "groups", "environment": "environment",
        "secret": "secrets", "namespace": "host_namespaces",
    }  # fmt: skip
    for kind, name in names.items():
        yield from (Excess(kind, str(value)) for value in sorted(getattr(found, name) - getattr(allowed, name)))
    for driver, count in sorted(found.requests.items()):
        if count > allowed.requests.get(driver, 0):
            yield Excess("device", f"{driver} x {count}")
    for who, port in sorted(found.ports - allowed.ports):
        known = any(number == port for _, number in allowed.ports)
        yield Excess("port.address" if known else "port", f"{who}:{port}")


def _mounts(found: Grants, allowed: Grants) -> Iterator[Excess]:
    known = {row.target: row for row in allowed.mounts}
    seen: set[str] = set()
    for row in found.mounts:
        if row.target in seen or row.target not in known:
            yield Excess("mount", f"{row.source} at {row.target}")
        else:
            yield from _mount(row, known[row.target])
        seen.add(row.target)


def _mount(row: Mount, allowed: Mount) -> Iterator[Excess]:
    if row.source != allowed.source:
        yield Excess("mount", f"{row.source} at {row.target}")
    kind = "tmpfs" if allowed.source == "tmpfs" else "mount"
    yield from (Excess(f"{kind}.{flag}", row.target) for flag in sorted(row.flags - allowed.flags))
    if row.size > allowed.size:
        yield Excess(f"{kind}.size", row.target)


def _limits(found: Grants, allowed: Grants) -> Iterator[Excess]:
    for name in LIMITS:
        if found.limits.get(name, UNBOUNDED) > allowed.limits.get(name, UNBOUNDED):
            yield Excess(f"limit.{name}", str(found.limits.get(name, "unbounded")))
