"""Grants of a compose file."""

from collections.abc import Mapping
from typing import Any

import yaml

from agentbox.core.paths import Paths
from agentbox.host.rendered_grants.model import Grants, Mount, UnknownGrantError, only
from agentbox.host.rendered_grants.words import (
    capabilities,
    group_number,
    published,
    restarts,
    security_options,
    size,
    tmpfs,
)

_BOX = Paths()
_NAMESPACES = {
    "ipc": "ipc",
    "pid": "pid",
    "uts": "uts",
    "userns_mode": "user",
    "network_mode": "network",
    "cgroup": "cgroup",
}
_HARMLESS = (
    "image", "container_name", "healthcheck", "logging", "labels", "hostname", "init", "pull_policy",
    "stop_grace_period", "stop_signal",
)  # fmt: skip
_READ = (
    "volumes", "secrets", "environment", "ports", "networks", "restart", "user", "cap_add", "cap_drop", "cpus", "deploy",
    "devices", "group_add", "mem_limit", "memswap_limit", "pids_limit", "privileged", "read_only", "runtime",
    "security_opt", "shm_size", "tmpfs", "ulimits",
)  # fmt: skip
_FLAGS = frozenset(["write", "exec", "suid", "dev"])


def of_compose(files: Mapping[str, bytes]) -> Grants:
    """`files` are those of the compose folder. Raises UnknownGrantError for a word that is not known here."""
    document = yaml.safe_load(files["docker-compose.yml"])
    only("compose", document, ("services", "networks", "volumes", "secrets"))
    only("the services", document["services"], ("agentbox",))
    service = document["services"]["agentbox"]
    only("the service", service, (*_HARMLESS, *_READ, *_NAMESPACES))
    escalation, seccomp = security_options(service.get("security_opt", []), files)
    return Grants(
        user=str(service.get("user", "")),
        capabilities=capabilities(service.get("cap_add", ()), service.get("cap_drop", ())),
        escalation=escalation,
        privileged=bool(service.get("privileged")),
        root_writable=service.get("read_only") is not True,
        seccomp=seccomp,
        mounts=(
            *(_volume(row, document, service) for row in service.get("volumes", ())),
            *(tmpfs(row) for row in service.get("tmpfs", ())),
            *(_secret(row, document) for row in service.get("secrets", ())),
        ),
        devices=frozenset(row.partition(":")[0] for row in service.get("devices", ())),
        requests=_requests(service.get("deploy", {})),
        groups=frozenset(group_number(str(name)) for name in service.get("group_add", ())),
        ports=frozenset(published(row) for row in service.get("ports", ())),
        environment=frozenset(service.get("environment", {})),
        secrets=frozenset(row["source"] for row in service.get("secrets", ())),
        host_namespaces=frozenset(
            name for key, name in _NAMESPACES.items() if service.get(key, "private") != "private"
        ),
        shared_network=any(document["networks"].get(name) != {"driver": "bridge"} for name in service["networks"]),
        runtime=service.get("runtime", ""),
        limits=_limits(service),
    )


def _limits(service: Mapping[str, Any]) -> dict[str, float]:
    ulimits = service.get("ulimits", {})
    only("ulimits", ulimits, ("core", "nofile"))
    sizes = {"memory": "mem_limit", "swap": "memswap_limit", "shm": "shm_size"}
    found = {name: size(service[key]) for name, key in sizes.items() if key in service}
    plain = {"cpus": "cpus", "pids": "pids_limit"}
    found |= {name: float(service[key]) for name, key in plain.items() if key in service}
    if "nofile" in ulimits:
        found["nofile"] = max(ulimits["nofile"].values())
    if "core" in ulimits:
        found["core"] = ulimits["core"]
    return {**found, "restarts": restarts(service.get("restart", "no"))}


def _volume(row: Mapping[str, Any], document: Mapping[str, Any], service: Mapping[str, Any]) -> Mount:
    if not isinstance(row, Mapping):
        raise UnknownGrantError(f"cannot read volume {row!r}", "")
    only("a volume", row, ("type", "source", "target", "read_only"))
    flags = _FLAGS - ({"write"} if row.get("read_only") else set())
    return Mount(target=row["target"], source=_source(row, document, service), flags=flags)


def _source(row: Mapping[str, Any], document: Mapping[str, Any], service: Mapping[str, Any]) -> str:
    source = str(row["source"])
    if row["type"] == "bind":
        manifest = source == "./agentbox.toml" and row["target"] == str(_BOX.manifest)
        return "manifest" if manifest else f"host:{source}"
    own = document["volumes"].get(source) == {"name": f"{service['container_name']}-{source}"}
    return f"volume:{source}" if row["type"] == "volume" and own else f"{row['type']}:{document['volumes'].get(source)}"


def _secret(row: Mapping[str, Any], document: Mapping[str, Any]) -> Mount:
    only("a secret", row, ("source", "target"))
    own = document["secrets"].get(row["source"]) == {"file": f"./secrets/{row['source']}"}
    source = f"secret:{row['source']}" if own else f"secret:{document['secrets'].get(row['source'])}"
    return Mount(target=str(_BOX.mounted_secrets / row["target"]), source=source, flags=_FLAGS - {"write"})


def _requests(deploy: Mapping[str, Any]) -> dict[str, float]:
    if not deploy:
        return {}
    only("deploy", deploy, ("resources",))
    only("deploy.resources", deploy["resources"], ("reservations",))
    only("reservations", deploy["resources"]["reservations"], ("devices",))
    rows = deploy["resources"]["reservations"]["devices"]
    return {row["driver"]: float("inf") if row["count"] == "all" else row["count"] for row in rows}
