"""Maps settings of the box to controls of the CIS Docker Benchmark 1.6 and of the Pod Security
Standards, and determines which an exception violates. A control of the Pod Security Standards is
violated exactly if the pod of the same plan violates it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import ip_address

from agentbox.plan.merge import ContainerProfile, effective_profile
from agentbox.plan.model import Plan
from agentbox.plan.render.kubernetes.pod import pod_spec
from agentbox.plan.render.kubernetes.security import LEVELS, RESTRICTED, Violation, violations
from agentbox.plan.render.options import RenderOptions

FIELDS = (
    "cap_add",
    "device_requests",
    "devices",
    "group_add",
    "runtime",
    "seccomp",
    "tmpfs",
    "volumes",
)
"""The fields that an exception may add to."""


@dataclass(frozen=True)
class ControlLine:
    """`name` is the setting in the compose file, `fields` the fields of an exception that add to
    it, `pod` the Pod Security controls and `cis` the numbers of CIS Docker 1.6 that it satisfies;
    `value` formats it, `find_violations` yields violated `cis` controls with reasons.
    """

    name: str
    cis: tuple[str, ...]
    value: Callable[[Plan, ContainerProfile], str]
    pod: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    find_violations: Callable[[Plan, ContainerProfile], Iterator[tuple[str, str]]] = (
        lambda _plan, _profile: iter(())
    )


def _limits(plan: Plan, _profile: ContainerProfile) -> str:
    return f"{plan.resources.cpus:g} CPUs, {plan.resources.memory >> 20} MiB memory"


def _devices(_plan: Plan, profile: ContainerProfile) -> str:
    requests = (
        f"{'all' if row.count < 0 else row.count} of {row.driver}"
        for row in profile.device_requests
    )
    groups = (f"group {name}" for name in profile.group_add)
    runtime = (f"runtime {profile.runtime}",) if profile.runtime else ()
    return ", ".join((*profile.devices, *requests, *groups, *runtime)) or "none"


def _device_violations(_plan: Plan, profile: ContainerProfile) -> Iterator[tuple[str, str]]:
    if profile.devices or profile.device_requests:
        yield "5.18", "devices of the host"


def _capability_violations(_plan: Plan, profile: ContainerProfile) -> Iterator[tuple[str, str]]:
    if profile.cap_add:
        yield "5.4", f"adds {', '.join(profile.cap_add)}"


def _published(plan: Plan, _profile: ContainerProfile) -> str:
    return ", ".join(f"{row.publish}:{row.port}" for row in plan.ports if row.publish) or "none"


def _publishing_violations(plan: Plan, _profile: ContainerProfile) -> Iterator[tuple[str, str]]:
    open_addresses = sorted(
        {
            row.publish
            for row in plan.ports
            if row.publish and ip_address(row.publish).is_unspecified
        }
    )
    if open_addresses:
        yield "5.14", f"published on every address ({', '.join(open_addresses)})"


def _tmpfs(_plan: Plan, profile: ContainerProfile) -> str:
    return ", ".join(
        f"{row.target}{' (runs programs)' if row.exec else ''}" for row in profile.tmpfs
    )


def _volumes(_plan: Plan, profile: ContainerProfile) -> str:
    return ", ".join(
        f"{row.source} at {row.target}{' (read-only)' if row.read_only else ''}"
        for row in profile.volumes
    )


CONTROL_LINES: tuple[ControlLine, ...] = (
    ControlLine(
        "user",
        ("4.1",),
        lambda _, profile: profile.user,
        ("Running as Non-root", "Running as Non-root user"),
    ),
    ControlLine(
        "cap_drop, cap_add",
        ("5.4",),
        lambda _, profile: (
            f"drops {', '.join(profile.cap_drop)}; adds {', '.join(profile.cap_add) or 'none'}"
        ),
        ("Capabilities",),
        ("cap_add",),
        _capability_violations,
    ),
    ControlLine(
        "privileged",
        ("5.5",),
        lambda _, profile: str(profile.privileged).lower(),
        ("Privileged Containers",),
    ),
    ControlLine("read_only", ("5.13",), lambda _, profile: str(profile.read_only).lower()),
    ControlLine(
        "security_opt: no-new-privileges",
        ("5.26",),
        lambda _, profile: str(profile.no_new_privileges).lower(),
        ("Privilege Escalation",),
    ),
    ControlLine(
        "security_opt: seccomp",
        ("5.22",),
        lambda plan, profile: f"{profile.seccomp}, {plan.digests.seccomp}",
        ("Seccomp",),
        ("seccomp",),
    ),
    ControlLine(
        "volumes",
        ("5.6", "5.20", "5.32"),
        _volumes,
        ("HostPath Volumes", "Volume Types"),
        ("volumes",),
    ),
    ControlLine("tmpfs", (), _tmpfs, (), ("tmpfs",)),
    ControlLine(
        "devices, group_add, runtime",
        ("5.18",),
        _devices,
        (),
        ("devices", "device_requests", "group_add", "runtime"),
        _device_violations,
    ),
    ControlLine("secrets", ("4.10",), lambda plan, _: ", ".join(plan.secrets) or "none"),
    ControlLine(
        "ports", ("5.8", "5.9", "5.14"), _published, ("Host Ports",), (), _publishing_violations
    ),
    ControlLine(
        "networks; no network_mode",
        ("5.10", "5.30"),
        lambda *_: "a network of its own",
        ("Host Namespaces",),
    ),
    ControlLine(
        "ipc: private; no pid, uts, userns_mode",
        ("5.16", "5.17", "5.21", "5.31"),
        lambda *_: "namespaces of its own",
        ("Host Namespaces",),
    ),
    ControlLine("no cgroup_parent", ("5.25",), lambda *_: "the engine's own"),
    ControlLine("mem_limit, cpus", ("5.11", "5.12"), _limits),
    ControlLine("pids_limit", ("5.29",), lambda plan, _: str(plan.resources.pids)),
    ControlLine(
        "ulimits", ("5.19",), lambda plan, _: f"{plan.resources.nofile} open files, no core"
    ),
    ControlLine("restart", ("5.15",), lambda *_: "on-failure:5"),
    ControlLine("healthcheck", ("4.6", "5.27"), lambda *_: "/ready"),
    ControlLine(
        "image",
        ("4.8", "5.7", "5.28"),
        lambda *_: "by digest; no setuid file (checked over its layers), no sshd",
    ),
)
ENGINE = ("5.2", "5.3")
"""AppArmor and SELinux are configured by the engine; the compose file sets neither."""


@dataclass(frozen=True)
class PlanAssessment:
    """A plan, and the controls that it satisfies."""

    plan: Plan

    @cached_property
    def profile(self) -> ContainerProfile:
        """Raises PlanError."""
        return effective_profile(self.plan)

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """The violations of level restricted by this plan's pod. Devices are ignored: the standards
        do not cover them, and not every cluster can grant them.
        """
        bare = (
            replace(row, devices=(), device_requests=(), group_add=())
            for row in self.plan.exceptions
        )
        return violations(
            {
                "spec": pod_spec(
                    replace(self.plan, exceptions=tuple(bare)), RenderOptions("agentbox")
                )
            },
            RESTRICTED,
        )

    @property
    def level(self) -> str:
        """The most restricted Pod Security level that the pod satisfies."""
        violated = {row.level for row in self.violations}
        return LEVELS[min((LEVELS.index(level) for level in violated), default=len(LEVELS)) - 1]

    def lost_controls(self, line: ControlLine) -> dict[str, str]:
        """Each violated control of a line, with the reason."""
        cis = {
            f"CIS {number}": reason
            for number, reason in line.find_violations(self.plan, self.profile)
        }
        pod = {
            f"PSS {row.control} ({row.level})": row.evidence
            for row in self.violations
            if row.control in line.pod
        }
        return {**cis, **pod}

    def satisfied_controls(self, line: ControlLine) -> tuple[str, ...]:
        """The satisfied controls of a line."""
        violated = self.lost_controls(line)
        violated_pod_controls = {row.control for row in self.violations}
        cis = (f"CIS {number}" for number in line.cis)
        return (
            *(name for name in cis if name not in violated),
            *(f"PSS {name}" for name in line.pod if name not in violated_pod_controls),
        )
