"""Which line of the box holds which control of the CIS Docker Benchmark 1.6 and of the Pod Security Standards, and what an
exception makes it give up.

A control of the Pod Security Standards is given up exactly when the pod of the same plan violates it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import ip_address

from agentbox.plan.merge import Profile, effective
from agentbox.plan.model import Plan
from agentbox.plan.render.kubernetes.pod import pod_spec
from agentbox.plan.render.kubernetes.security import LEVELS, RESTRICTED, Violation, violations
from agentbox.plan.render.options import Options

FIELDS = ("cap_add", "device_requests", "devices", "group_add", "runtime", "seccomp", "tmpfs", "volumes")
"""What a delta may add to."""


@dataclass(frozen=True)
class Line:
    """`name` is what stands in the compose file, `fields` the fields of a delta that add to it, `pod` the names of the Pod
    Security controls that it holds, `cis` the numbers of CIS Docker 1.6; `value` shows it, `gives_up` tells which of `cis`
    do not hold any more, and why."""

    name: str
    cis: tuple[str, ...]
    value: Callable[[Plan, Profile], str]
    pod: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    gives_up: Callable[[Plan, Profile], Iterator[tuple[str, str]]] = lambda _plan, _profile: iter(())


def _limits(plan: Plan, _profile: Profile) -> str:
    return f"{plan.resources.cpus:g} CPUs, {plan.resources.memory >> 20} MiB memory"


def _devices(_plan: Plan, profile: Profile) -> str:
    requests = (f"{'all' if row.count < 0 else row.count} of {row.driver}" for row in profile.device_requests)
    groups = (f"group {name}" for name in profile.group_add)
    runtime = (f"runtime {profile.runtime}",) if profile.runtime else ()
    return ", ".join((*profile.devices, *requests, *groups, *runtime)) or "none"


def _devices_given(_plan: Plan, profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.devices or profile.device_requests:
        yield "5.18", "devices of the host"


def _capabilities_given(_plan: Plan, profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.cap_add:
        yield "5.4", f"adds {', '.join(profile.cap_add)}"


def _published(plan: Plan, _profile: Profile) -> str:
    return ", ".join(f"{row.publish}:{row.port}" for row in plan.ports if row.publish) or "none"


def _published_widely(plan: Plan, _profile: Profile) -> Iterator[tuple[str, str]]:
    wide = sorted({row.publish for row in plan.ports if row.publish and ip_address(row.publish).is_unspecified})
    if wide:
        yield "5.14", f"published on every address ({', '.join(wide)})"


def _tmpfs(_plan: Plan, profile: Profile) -> str:
    return ", ".join(f"{row.target}{' (runs programs)' if row.exec else ''}" for row in profile.tmpfs)


def _volumes(_plan: Plan, profile: Profile) -> str:
    return ", ".join(
        f"{row.source} at {row.target}{' (read-only)' if row.read_only else ''}" for row in profile.volumes
    )


LINES: tuple[Line, ...] = (
    Line("user", ("4.1",), lambda _, profile: profile.user, ("Running as Non-root", "Running as Non-root user")),
    Line("cap_drop, cap_add", ("5.4",), lambda _, profile: f"drops {', '.join(profile.cap_drop)}; adds {', '.join(profile.cap_add) or 'none'}",
         ("Capabilities",), ("cap_add",), _capabilities_given),
    Line("privileged", ("5.5",), lambda _, profile: str(profile.privileged).lower(), ("Privileged Containers",)),
    Line("read_only", ("5.13",), lambda _, profile: str(profile.read_only).lower()),
    Line("security_opt: no-new-privileges", ("5.26",), lambda _, profile: str(profile.no_new_privileges).lower(), ("Privilege Escalation",)),
    Line("security_opt: seccomp", ("5.22",), lambda plan, profile: f"{profile.seccomp}, {plan.digests.seccomp}", ("Seccomp",), ("seccomp",)),
    Line("volumes", ("5.6", "5.20", "5.32"), _volumes, ("HostPath Volumes", "Volume Types"), ("volumes",)),
    Line("tmpfs", (), _tmpfs, (), ("tmpfs",)),
    Line("devices, group_add, runtime", ("5.18",), _devices, (), ("devices", "device_requests", "group_add", "runtime"), _devices_given),
    Line("secrets", ("4.10",), lambda plan, _: ", ".join(plan.secrets) or "none"),
    Line("ports", ("5.8", "5.9", "5.14"), _published, ("Host Ports",), (), _published_widely),
    Line("networks; no network_mode", ("5.10", "5.30"), lambda *_: "a network of its own", ("Host Namespaces",)),
    Line("ipc: private; no pid, uts, userns_mode", ("5.16", "5.17", "5.21", "5.31"), lambda *_: "namespaces of its own", ("Host Namespaces",)),
    Line("no cgroup_parent", ("5.25",), lambda *_: "the engine's own"),
    Line("mem_limit, cpus", ("5.11", "5.12"), _limits),
    Line("pids_limit", ("5.29",), lambda plan, _: str(plan.resources.pids)),
    Line("ulimits", ("5.19",), lambda plan, _: f"{plan.resources.nofile} open files, no core"),
    Line("restart", ("5.15",), lambda *_: "on-failure:5"),
    Line("healthcheck", ("4.6", "5.27"), lambda *_: "/ready"),
    Line("image", ("4.8", "5.7", "5.28"), lambda *_: "by digest; no setuid file (checked over its layers), no sshd"),
)  # fmt: skip
ENGINE = ("5.2", "5.3")
"""AppArmor and SELinux are the engine's own: the compose file sets neither."""


@dataclass(frozen=True)
class Judged:
    """A plan, and what of it holds."""

    plan: Plan

    @cached_property
    def profile(self) -> Profile:
        """Raises PlanError."""
        return effective(self.plan)

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """What of level restricted the pod of this plan gives up. Devices are left out: the standards say nothing of them,
        and not every cluster can grant them."""
        bare = (replace(row, devices=(), device_requests=(), group_add=()) for row in self.plan.exceptions)
        return violations(
            {"spec": pod_spec(replace(self.plan, exceptions=tuple(bare)), Options("agentbox"))}, RESTRICTED
        )

    @property
    def level(self) -> str:
        """The narrowest Pod Security level that the pod fits."""
        violated = {row.level for row in self.violations}
        return LEVELS[min((LEVELS.index(level) for level in violated), default=len(LEVELS)) - 1]

    def given_up(self, line: Line) -> dict[str, str]:
        """Each control of a line that does not hold in this plan, and why."""
        cis = {f"CIS {number}": why for number, why in line.gives_up(self.plan, self.profile)}
        pod = {f"PSS {row.control} ({row.level})": row.found for row in self.violations if row.control in line.pod}
        return {**cis, **pod}

    def holds(self, line: Line) -> tuple[str, ...]:
        """The controls of a line that hold."""
        lost = self.given_up(line)
        gone = {row.control for row in self.violations}
        cis = (f"CIS {number}" for number in line.cis)
        return (*(name for name in cis if name not in lost), *(f"PSS {name}" for name in line.pod if name not in gone))
