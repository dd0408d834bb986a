"""The Pod Security Standards as rules over a pod template, and the level that a pod needs. Source:
kubernetes.io, "Pod Security Standards", as of v1.34, one function per control, with the standard's
names. Windows controls are omitted: a box is a Linux pod.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.plan.model import Plan

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
"""From the least to the most restricted."""

_BASELINE_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_RESTRICTED_CAPABILITIES = frozenset(["NET_BIND_SERVICE"])
_SELINUX_TYPES = frozenset(
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"]
)
_CONFINED = frozenset(["RuntimeDefault", "Localhost"])
_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ]
)
_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
        "name",
    ]
)
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")

Findings = Iterator[str]


@dataclass(frozen=True)
class Violation:
    """`level` is the most permissive level that forbids it; `evidence` is the field with
    its value.
    """

    level: str
    control: str
    evidence: str


class PodSecurityError(AgentboxError):
    """The pod needs a less restricted level than allowed."""

    exit_code = ExitCode.BAD


def check(plan: Plan, template: Mapping[str, Any], allowed: str) -> None:
    """Raises PodSecurityError with all violations of `allowed`, if any."""
    violated = violations(template, allowed)
    if not violated:
        return
    required = BASELINE if not violations(template, BASELINE) else PRIVILEGED
    rows = "".join(f"\n  {row.control} ({row.level}): {row.evidence}" for row in violated)
    keys = ", ".join(f"security.exceptions.{row.key}" for row in plan.exceptions)
    raise PodSecurityError(
        f"cannot render kubernetes at Pod Security level {allowed}: {keys or 'the plan'} needs "
        f"{required}{rows}",
        f"remove the exception, or pass --allow-psa {required} and run the pod in a namespace of "
        "that level",
    )


def violations(template: Mapping[str, Any], level: str = RESTRICTED) -> tuple[Violation, ...]:
    """The violations of a level in a pod template (`metadata`, `spec`), in the standard's order."""
    result = [
        Violation(BASELINE, name, text)
        for name, rule in _BASELINE.items()
        for text in rule(template)
    ]
    result += [
        Violation(RESTRICTED, name, text)
        for name, rule in _RESTRICTED.items()
        for text in rule(template)
    ]
    allowed = LEVELS.index(level)
    return tuple(row for row in result if LEVELS.index(row.level) <= allowed)


def _containers(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(template["spec"].get(kind) or ()):
            yield f"{kind}[{index}]", container


def _contexts(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "securityContext", template["spec"].get("securityContext") or {}
    yield from _container_contexts(template)


def _container_contexts(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for location, container in _containers(template):
        yield f"{location}.securityContext", container.get("securityContext") or {}


def _host_namespaces(template: Mapping[str, Any]) -> Findings:
    return (name for name in ("hostNetwork", "hostPID", "hostIPC") if template["spec"].get(name))


def _privileged(template: Mapping[str, Any]) -> Findings:
    return (
        f"{location}.privileged"
        for location, context in _container_contexts(template)
        if context.get("privileged")
    )


def _added_capabilities(template: Mapping[str, Any], allowed: frozenset[str]) -> Findings:
    for location, context in _container_contexts(template):
        for name in (context.get("capabilities") or {}).get("add") or ():
            if name not in allowed:
                yield f"{location}.capabilities.add {name}"


def _host_path(template: Mapping[str, Any]) -> Findings:
    return (
        f"volume {row['name']}: hostPath"
        for row in template["spec"].get("volumes") or ()
        if "hostPath" in row
    )


def _host_ports(template: Mapping[str, Any]) -> Findings:
    for location, container in _containers(template):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield f"{location}.ports hostPort {port['hostPort']}"


def _host_probes(template: Mapping[str, Any]) -> Findings:
    for location, container in _containers(template):
        hooks = container.get("lifecycle") or {}
        rows = chain(((name, container.get(name) or {}) for name in _PROBES), hooks.items())
        for name, row in rows:
            for kind in ("httpGet", "tcpSocket"):
                if (row.get(kind) or {}).get("host"):
                    yield f"{location}.{name}.{kind}.host"


def _app_armor(template: Mapping[str, Any]) -> Findings:
    for location, context in _contexts(template):
        if (context.get("appArmorProfile") or {}).get("type", "RuntimeDefault") not in _CONFINED:
            yield f"{location}.appArmorProfile.type"
    for name, value in (template.get("metadata", {}).get("annotations") or {}).items():
        allowed = value in ("", "runtime/default") or value.startswith("localhost/")
        if name.startswith("container.apparmor.security.beta.kubernetes.io/") and not allowed:
            yield f"annotation {name}"


def _selinux(template: Mapping[str, Any]) -> Findings:
    for location, context in _contexts(template):
        options = context.get("seLinuxOptions") or {}
        if options.get("type", "") not in _SELINUX_TYPES:
            yield f"{location}.seLinuxOptions.type {options['type']}"
        yield from (
            f"{location}.seLinuxOptions.{name}" for name in ("user", "role") if options.get(name)
        )


def _proc_mount(template: Mapping[str, Any]) -> Findings:
    return (
        f"{location}.procMount"
        for location, context in _container_contexts(template)
        if context.get("procMount", "Default") != "Default"
    )


def _seccomp_unconfined(template: Mapping[str, Any]) -> Findings:
    for location, context in _contexts(template):
        if (context.get("seccompProfile") or {}).get("type", "RuntimeDefault") not in _CONFINED:
            yield f"{location}.seccompProfile.type"


def _sysctls(template: Mapping[str, Any]) -> Findings:
    rows = (template["spec"].get("securityContext") or {}).get("sysctls") or ()
    return (f"securityContext.sysctls {row['name']}" for row in rows if row["name"] not in _SYSCTLS)


def _volume_types(template: Mapping[str, Any]) -> Findings:
    for row in template["spec"].get("volumes") or ():
        yield from (
            f"volume {row['name']}: {kind}"
            for kind in row
            if kind != "name" and kind not in _VOLUMES
        )


def _escalation(template: Mapping[str, Any]) -> Findings:
    for location, context in _container_contexts(template):
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{location}.allowPrivilegeEscalation is not false"


def _effective_values(template: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """The value of a field that a container inherits from its pod unless it sets its own."""
    pod_value = (template["spec"].get("securityContext") or {}).get(name)
    for location, context in _container_contexts(template):
        yield f"{location}.{name}", context.get(name, pod_value)


def _non_root(template: Mapping[str, Any]) -> Findings:
    return (
        f"{location} is not true"
        for location, value in _effective_values(template, "runAsNonRoot")
        if value is not True
    )


def _root_user(template: Mapping[str, Any]) -> Findings:
    return (
        f"{location}.runAsUser 0"
        for location, context in _contexts(template)
        if context.get("runAsUser") == 0
    )


def _seccomp_unset(template: Mapping[str, Any]) -> Findings:
    for location, value in _effective_values(template, "seccompProfile"):
        if (value or {}).get("type") not in _CONFINED:
            yield f"{location} is not set"


def _not_dropped(template: Mapping[str, Any]) -> Findings:
    for location, context in _container_contexts(template):
        if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
            yield f"{location}.capabilities.drop lacks ALL"


_Rule = Callable[[Mapping[str, Any]], Findings]
_BASELINE: Mapping[str, _Rule] = {
    "Host Namespaces": _host_namespaces,
    "Privileged Containers": _privileged,
    "Capabilities": lambda template: _added_capabilities(template, _BASELINE_CAPABILITIES),
    "HostPath Volumes": _host_path,
    "Host Ports": _host_ports,
    "Host Probes / Lifecycle Hooks": _host_probes,
    "AppArmor": _app_armor,
    "SELinux": _selinux,
    "/proc Mount Type": _proc_mount,
    "Seccomp": _seccomp_unconfined,
    "Sysctls": _sysctls,
}
_RESTRICTED: Mapping[str, _Rule] = {
    "Volume Types": _volume_types,
    "Privilege Escalation": _escalation,
    "Running as Non-root": _non_root,
    "Running as Non-root user": _root_user,
    "Seccomp": _seccomp_unset,
    "Capabilities": lambda template: chain(
        _added_capabilities(template, _RESTRICTED_CAPABILITIES), _not_dropped(template)
    ),
}
