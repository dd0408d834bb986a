"""Grants of the Kubernetes objects: pod, claims, and network access."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from agentbox.core.paths import Paths
from agentbox.plan.names import KUBERNETES, TARGET_VARIABLE
from support.rendered_grants.compare import LABELLED
from support.rendered_grants.model import (
    GrantedMount,
    Grants,
    UnknownGrantError,
    require_known,
)
from support.rendered_grants.parsing import file_digest, granted_capabilities, parse_size

_KINDS = ("ConfigMap", "Service", "NetworkPolicy", "PodDisruptionBudget", "StatefulSet")
_POD = (
    "automountServiceAccountToken",
    "enableServiceLinks",
    "runtimeClassName",
    "securityContext",
    "terminationGracePeriodSeconds",
    "containers",
    "volumes",
    "hostNetwork",
    "hostPID",
    "hostIPC",
)
_POD_CONTEXT = (
    "runAsNonRoot",
    "runAsUser",
    "runAsGroup",
    "fsGroup",
    "fsGroupChangePolicy",
    "supplementalGroups",
    "seccompProfile",
)
_CONTAINER = (
    "name",
    "image",
    "imagePullPolicy",
    "securityContext",
    "env",
    "ports",
    "resources",
    "startupProbe",
    "livenessProbe",
    "readinessProbe",
    "volumeMounts",
)
_CONTEXT = ("allowPrivilegeEscalation", "capabilities", "privileged", "readOnlyRootFilesystem")
_HOST = {"hostNetwork": "network", "hostPID": "pid", "hostIPC": "ipc"}
_SHM = 64 << 20  # default of the container runtimes (containerd, CRI-O) without a mount at /dev/shm
_TARGET_ENTRY = {
    "name": TARGET_VARIABLE,
    "value": KUBERNETES,
}  # tells the box its target, and grants nothing
_FLAGS = frozenset(["write", "exec", "suid", "dev"])
_DEVICES = {"amd.com/gpu": ("/dev/dri", "/dev/kfd")}
_REQUESTS = {"nvidia.com/gpu": "nvidia"}
_BOX = Paths()

Rows = Mapping[str, Mapping[str, Any]]


def read_kubernetes(files: Mapping[str, bytes]) -> Grants:
    """`files` has `kubernetes.yaml` and the seccomp file of the nodes. Raises UnknownGrantError for
    an unknown word.
    """
    rows: Rows = {row["kind"]: row for row in yaml.safe_load_all(files["kubernetes.yaml"])}
    require_known("the objects", rows, _KINDS)
    stateful = rows["StatefulSet"]["spec"]
    pod = stateful["template"]["spec"]
    box = _container(pod)
    pod_context, box_context = pod["securityContext"], box["securityContext"]
    limits = box["resources"]["limits"]
    mounts = tuple(mount for row in box["volumeMounts"] for mount in _mounts(row, pod, stateful))
    return Grants(
        user=f"{pod_context['runAsUser']}:{pod_context['runAsGroup']}",
        capabilities=granted_capabilities(
            box_context["capabilities"].get("add", ()), box_context["capabilities"].get("drop", ())
        ),
        escalation=box_context.get("allowPrivilegeEscalation") is not False,
        privileged=bool(box_context.get("privileged")),
        root_writable=box_context.get("readOnlyRootFilesystem") is not True,
        seccomp=_seccomp(pod_context.get("seccompProfile", {}), files),
        mounts=mounts,
        devices=frozenset(path for name in limits for path in _DEVICES.get(name, ())),
        requests={
            _REQUESTS[name]: float(count) for name, count in limits.items() if name in _REQUESTS
        },
        groups=frozenset(str(number) for number in pod_context.get("supplementalGroups", ())),
        ports=frozenset(_ports(box, rows)),
        environment=frozenset(_environment(box)),
        secrets=frozenset(
            row.source.removeprefix("secret:") for row in mounts if row.source.startswith("secret:")
        ),
        host_namespaces=frozenset(name for key, name in _HOST.items() if pod.get(key)),
        # a pod has its own network namespace; its ports state who may connect
        shared_network=False,
        runtime=pod.get("runtimeClassName", ""),
        limits=_limits(box["resources"], mounts),
    )


def _container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    require_known("the pod", pod, _POD)
    require_known("the pod's context", pod["securityContext"], _POD_CONTEXT)
    if len(pod["containers"]) != 1 or pod.get("automountServiceAccountToken") is not False:
        raise UnknownGrantError(
            "cannot read the pod: it has a second container or a service account's token", ""
        )
    container: Mapping[str, Any] = pod["containers"][0]
    require_known("the container", container, _CONTAINER)
    require_known("the container's context", container["securityContext"], _CONTEXT)
    require_known(
        "the limits", container["resources"]["limits"], ("cpu", "memory", *_DEVICES, *_REQUESTS)
    )
    return container


def _seccomp(profile: Mapping[str, str], files: Mapping[str, bytes]) -> str:
    return (
        file_digest(f"seccomp/{profile['localhostProfile']}", files)
        if profile.get("type") == "Localhost"
        else ""
    )


def _environment(box: Mapping[str, Any]) -> Iterator[str]:
    for row in box["env"]:
        require_known("a variable", row, ("name", "value", "valueFrom"))
        require_known("the source of a variable", row.get("valueFrom", {}), ("configMapKeyRef",))
        if row != _TARGET_ENTRY:
            yield row["name"]


def _limits(resources: Mapping[str, Any], mounts: tuple[GrantedMount, ...]) -> dict[str, float]:
    """Requests equal to limits make the pod `Guaranteed`; the kubelet gives swap to `Burstable`
    pods only.
    """
    limits = resources["limits"]
    cpu = str(limits["cpu"])
    values = {
        "memory": parse_size(limits["memory"]),
        "cpus": float(cpu[:-1]) / 1000 if cpu.endswith("m") else float(cpu),
    }
    if resources["requests"] == limits:
        values["swap"] = values["memory"]
    values["shm"] = 0 if any(row.target == "/dev/shm" for row in mounts) else _SHM
    return values


def _mounts(
    row: Mapping[str, Any], pod: Mapping[str, Any], stateful: Mapping[str, Any]
) -> Iterator[GrantedMount]:
    require_known("a mount", row, ("name", "mountPath", "readOnly", "subPath"))
    target, flags = row["mountPath"], _FLAGS - ({"write"} if row.get("readOnly") else set())
    claimed = {claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]}
    if row["name"] in claimed:
        yield GrantedMount(target=target, source=f"volume:{row['name']}", flags=flags)
        return
    volume = next(candidate for candidate in pod["volumes"] if candidate["name"] == row["name"])
    require_known("a volume", volume, ("name", "emptyDir", "configMap", "secret", "hostPath"))
    if "emptyDir" in volume:
        yield _empty_dir(target, flags, volume["emptyDir"])
    elif "configMap" in volume:
        manifest = (row.get("subPath"), target) == ("agentbox.toml", str(_BOX.manifest))
        yield GrantedMount(
            target=target,
            source="manifest" if manifest else f"map {volume['configMap']['name']}",
            flags=flags,
        )
    elif "secret" in volume:
        items = volume["secret"].get("items") or [{"path": "*", "key": "every key"}]
        for item in items:
            yield GrantedMount(
                target=f"{target}/{item['path']}", source=f"secret:{item['key']}", flags=flags
            )
    else:
        yield GrantedMount(target=target, source=f"host:{volume['hostPath']['path']}", flags=flags)


def _empty_dir(target: str, flags: frozenset[str], empty: Mapping[str, str]) -> GrantedMount:
    source = "tmpfs" if empty.get("medium") == "Memory" else "node disk"
    return GrantedMount(
        target=target,
        source=source,
        flags=flags,
        size=parse_size(empty["sizeLimit"]) if "sizeLimit" in empty else float("inf"),
    )


def _ports(box: Mapping[str, Any], rows: Rows) -> Iterator[tuple[str, int]]:
    """Yield every port of the container or the Service with who may connect: a container's port is
    open to every pod unless a policy restricts it.
    """
    policy = rows["NetworkPolicy"]["spec"]
    numbers = {row["name"]: row["containerPort"] for row in box["ports"]}
    service = {row["port"] for row in rows["Service"]["spec"]["ports"]}
    outside = rows["Service"]["spec"].get("type", "ClusterIP") != "ClusterIP"
    for row in box["ports"]:
        require_known("a port", row, ("name", "containerPort", "protocol", "hostPort", "hostIP"))
        if "hostPort" in row:
            yield row.get("hostIP", "0.0.0.0"), row["hostPort"]
    for port in sorted(set(numbers.values()) | service | _allowed_ports(policy)):
        yield ("everybody" if outside else _allowed_peers(policy, port)), port


def _allowed_ports(policy: Mapping[str, Any]) -> set[int]:
    return {port["port"] for rule in policy["ingress"] for port in rule.get("ports", ())}


def _allowed_peers(policy: Mapping[str, Any], port: int) -> str:
    """Return LABELLED if every rule for this port selects labels of pods in the same namespace."""
    rules = [
        rule
        for rule in policy["ingress"]
        if port in {row["port"] for row in rule.get("ports", [{"port": port}])}
    ]
    if "Ingress" not in policy["policyTypes"] or not policy["podSelector"].get("matchLabels"):
        return "everybody"
    peers = [peer for rule in rules for peer in rule.get("from") or [{}]]
    is_restricted = all(
        set(peer) == {"podSelector"} and peer["podSelector"].get("matchLabels") for peer in peers
    )
    return LABELLED if is_restricted else "everybody"
