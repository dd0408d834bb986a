"""plan -> the pod's spec, with the complete baseline."""

from typing import Any

from agentbox.core.data_files import config_dir
from agentbox.core.paths import Paths
from agentbox.plan.merge import GID, UID, ContainerProfile, effective_profile
from agentbox.plan.model import Plan
from agentbox.plan.names import KUBERNETES, TARGET_VARIABLE
from agentbox.plan.render import yaml
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.kubernetes.storage import (
    authority_volumes,
    host_volumes,
    mebibytes,
    memory_volumes,
    mounts,
)
from agentbox.plan.render.options import RenderOptions, container_environment, passed_variables

MANIFEST_KEY = "agentbox.toml"
_BOX = Paths()
_MANIFEST, _SECRETS = "manifest", "secrets"
_DRIVERS = {"nvidia": "nvidia.com/gpu"}
_DEVICES = {frozenset(["/dev/kfd", "/dev/dri"]): "amd.com/gpu"}
"""Resources of the vendors' device plugins, the only way to get devices in Kubernetes."""


def pod_spec(plan: Plan, options: RenderOptions) -> dict[str, Any]:
    """No host namespace, no service account, uid and gid 1000. Raises RenderError for a device
    without a plugin.
    """
    profile = effective_profile(plan)
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"runtimeClassName": profile.runtime} if profile.runtime else {}),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": GID,
            "fsGroup": GID,
            "fsGroupChangePolicy": "OnRootMismatch",
            **_groups(profile),
            "seccompProfile": {"type": "Localhost", "localhostProfile": f"{profile.seccomp}.json"},
        },
        "terminationGracePeriodSeconds": plan.resources.stop_seconds,
        "containers": [_container(plan, profile, options)],
        "volumes": _volumes(plan, profile),
    }


def _container(plan: Plan, profile: ContainerProfile, options: RenderOptions) -> dict[str, Any]:
    return {
        "name": "agentbox",
        "image": options.image_ref,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": not profile.no_new_privileges,
            "capabilities": {
                "drop": list(profile.cap_drop),
                **({"add": list(profile.cap_add)} if profile.cap_add else {}),
            },
            "privileged": profile.privileged,
            "readOnlyRootFilesystem": profile.read_only,
        },
        "env": _environment(plan, options),
        "ports": [
            {"name": "api", "containerPort": plan.api.port, "protocol": "TCP"},
            {
                "name": "metrics",
                "containerPort": plan.observability.metrics_port,
                "protocol": "TCP",
            },
        ],
        "resources": _resources(plan, profile),
        **_probes(),
        "volumeMounts": _mounts(plan, profile),
    }


def _environment(plan: Plan, options: RenderOptions) -> list[dict[str, Any]]:
    """Includes the target variable, by which the box knows the limits of its pod. A cluster has no
    operator environment: passed-through variables come from an optional ConfigMap with optional
    keys.
    """
    environment = {
        **container_environment(plan, options, options.image_ref),
        TARGET_VARIABLE: KUBERNETES,
    }
    source = {"name": f"{plan.name}-environment", "optional": True}
    return [
        *(
            {"name": name, "value": yaml.Quoted(_literal(value))}
            for name, value in sorted(environment.items())
        ),
        *(
            {"name": name, "valueFrom": {"configMapKeyRef": {**source, "key": name}}}
            for name in passed_variables(plan, *environment)
        ),
    ]


def _literal(value: str) -> str:
    """Escapes text for Kubernetes, which substitutes variables."""
    return value.replace("$(", "$$(")


def _resources(plan: Plan, profile: ContainerProfile) -> dict[str, Any]:
    millis = round(plan.resources.cpus * 1000)
    cpu = str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"
    limits = {
        "cpu": yaml.Quoted(cpu),
        "memory": mebibytes(plan.resources.memory),
        **_plugins(profile),
    }
    return {"requests": limits, "limits": limits}


def _plugins(profile: ContainerProfile) -> dict[str, str]:
    """A plugin grants whole devices by count: one, if the plan says all."""
    resources: dict[str, str] = {}
    for row in profile.device_requests:
        if row.driver not in _DRIVERS:
            raise _device_error(f"devices of driver {row.driver}")
        resources[_DRIVERS[row.driver]] = yaml.Quoted(str(max(row.count, 1)))
    remaining = set(profile.devices)
    for paths, resource in _DEVICES.items():
        if paths <= remaining:
            resources[resource] = yaml.Quoted("1")
            remaining -= paths
    if remaining:
        raise _device_error(f"device {min(remaining)}")
    return resources


def _device_error(device: str) -> RenderError:
    return RenderError(
        f"cannot render {device} for kubernetes: a pod gets devices from device plugins only, and "
        "none is known for it",
        f"known: drivers {', '.join(_DRIVERS)}; "
        f"{', '.join(' with '.join(sorted(paths)) for paths in _DEVICES)}",
    )


def _groups(profile: ContainerProfile) -> dict[str, Any]:
    """Kubernetes uses group numbers. A name is looked up in the image's /etc/group."""
    if not profile.group_add:
        return {}
    group_ids = {
        row.split(":")[0]: int(row.split(":")[2])
        for row in (config_dir() / "etc/group").read_text().splitlines()
    }
    numbers = []
    for name in profile.group_add:
        if not name.isdecimal() and name not in group_ids:
            raise RenderError(
                f"cannot render group {name} for kubernetes: the image's /etc/group has no such "
                "name",
                "write its number on the nodes",
            )
        numbers.append(int(name) if name.isdecimal() else group_ids[name])
    return {"supplementalGroups": numbers}


def _probes() -> dict[str, Any]:
    live, ready = ({"path": path, "port": "api"} for path in ("/livez", "/ready"))
    return {
        "startupProbe": {"httpGet": live, "periodSeconds": 1, "failureThreshold": 30},
        "livenessProbe": {"httpGet": live, "periodSeconds": 10},
        "readinessProbe": {"httpGet": ready, "periodSeconds": 5, "failureThreshold": 2},
    }


def _mounts(plan: Plan, profile: ContainerProfile) -> list[dict[str, Any]]:
    secrets = {"name": _SECRETS, "mountPath": str(_BOX.mounted_secrets), "readOnly": True}
    manifest = {
        "name": _MANIFEST,
        "mountPath": str(_BOX.manifest),
        "subPath": MANIFEST_KEY,
        "readOnly": True,
    }
    return [*mounts(profile.volumes, profile.tmpfs), *([secrets] if plan.secrets else []), manifest]


def _volumes(plan: Plan, profile: ContainerProfile) -> list[dict[str, Any]]:
    """The Secret and its keys are optional: an unset secret is valid on all targets."""
    secret = {
        "secretName": f"{plan.name}-secrets",
        "defaultMode": 0o440,
        "optional": True,
        "items": [{"key": name, "path": name} for name in plan.secrets],
    }
    return [
        *memory_volumes(profile.tmpfs),
        *host_volumes(profile.volumes),
        *authority_volumes(plan, profile.volumes),
        *([{"name": _SECRETS, "secret": secret}] if plan.secrets else []),
        {"name": _MANIFEST, "configMap": {"name": plan.name, "defaultMode": 0o444}},
    ]
