"""Volumes of the pod: claims for durable data, memory for tmpfs mounts, a ConfigMap for trusted
certificates, a node path per host directory.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, TmpfsPlan, VolumePlan
from agentbox.plan.names import STATE
from agentbox.plan.render.kubernetes.names import label, selector_labels

_AUTHORITIES = "authorities"
_AUTHORITIES_KEY = "ca-bundle.pem"
_STATE = 15  # GiB: the default quota of pods and journal, plus one
_OTHER = 10  # GiB; a claim can be enlarged, never shrunk


def claims(plan: Plan, volumes: Iterable[VolumePlan]) -> list[dict[str, Any]]:
    """One claim template per named volume. The size is a request to the cluster. It does not depend
    on keys: quotas are live, and a cluster rejects a changed template of an existing StatefulSet.
    """
    return [
        {
            "metadata": {
                "name": label(row.source, f"volume at {row.target}"),
                "labels": selector_labels(plan),
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {
                    "requests": {"storage": f"{_STATE if row.source == STATE else _OTHER}Gi"}
                },
            },
        }
        for row in volumes
        if not _is_host_path(row) and not _is_authorities(row)
    ]


def host_volumes(volumes: Iterable[VolumePlan]) -> list[dict[str, Any]]:
    """Host paths, which Pod Security allows at level privileged only."""
    return [
        {"name": _name("host", row.source), "hostPath": {"path": row.source}}
        for row in volumes
        if _is_host_path(row)
    ]


def authority_volumes(plan: Plan, volumes: Iterable[VolumePlan]) -> list[dict[str, Any]]:
    """`network.ca_bundle` is a file of the operator's host; a cluster has it in the ConfigMap
    `NAME-authorities`, under the key `ca-bundle.pem`.
    """
    source = {"name": f"{plan.name}-{_AUTHORITIES}", "defaultMode": 0o444}
    return [{"name": _AUTHORITIES, "configMap": source} for row in volumes if _is_authorities(row)]


def memory_volumes(rows: Iterable[TmpfsPlan]) -> list[dict[str, Any]]:
    """An `emptyDir` has no mount options: noexec, nosuid, nodev and mode apply to other targets
    only.
    """
    return [
        {
            "name": _name("memory", row.target),
            "emptyDir": {"medium": "Memory", "sizeLimit": mebibytes(row.size)},
        }
        for row in rows
    ]


def mounts(volumes: Iterable[VolumePlan], rows: Iterable[TmpfsPlan]) -> list[dict[str, Any]]:
    """Sorted by path, so that a parent precedes its children."""
    result: list[dict[str, Any]] = [
        *({"name": _name("memory", row.target), "mountPath": row.target} for row in rows),
        *(
            {
                "name": _volume_name(row),
                "mountPath": row.target,
                **({"subPath": _AUTHORITIES_KEY} if _is_authorities(row) else {}),
                **({"readOnly": True} if row.read_only else {}),
            }
            for row in volumes
        ),
    ]
    return sorted(result, key=lambda mount: str(mount["mountPath"]))


def _volume_name(row: VolumePlan) -> str:
    if _is_authorities(row):
        return _AUTHORITIES
    return _name("host", row.source) if _is_host_path(row) else row.source


def _is_authorities(row: VolumePlan) -> bool:
    return row.target == str(Paths().mounted_authorities)


def _is_host_path(row: VolumePlan) -> bool:
    return row.source.startswith("/") and not _is_authorities(row)


def _name(kind: str, path: str) -> str:
    """A DNS label for a path. If characters are lost, a digest keeps different paths distinct."""
    slug = re.sub("[^a-z0-9]+", "-", path.lower()).strip("-")
    is_plain = re.fullmatch("[a-z0-9/]+", path)
    return label(
        f"{kind}-{slug}" if is_plain else f"{kind}-{slug}-{sha256(path.encode()).hexdigest()[:6]}",
        path,
    )


def mebibytes(count: int) -> str:
    """A quantity: `256Mi`, or in Ki if not whole. Sizes in a manifest are whole KiB."""
    return f"{count >> 20}Mi" if count % (1 << 20) == 0 else f"{count >> 10}Ki"
