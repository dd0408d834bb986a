"""Grants of a compose file."""

from collections.abc import Mapping
from typing import Any

import yaml

from agentbox.core.paths import Paths
from support.rendered_grants.model import (
    GrantedMount,
    Grants,
    UnknownGrantError,
    require_known,
)
from support.rendered_grants.parsing import (
    granted_capabilities,
    group_number,
    parse_port,
    parse_restarts,
    parse_size,
    parse_tmpfs,
    security_options,
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
    "image",
    "container_name",
    "healthcheck",
    "logging",
    "labels",
    "hostname",
    "init",
    "pull_policy",
    "stop_grace_period",
    "stop_signal",
)
_READ = (
    "volumes",
    "secrets",
    "environment",
    "ports",
    "networks",
    "restart",
    "user",
    "cap_add",
    "cap_drop",
    "cpus",
    "deploy",
    "devices",
    "group_add",
    "mem_limit",
    "memswap_limit",
    "pids_limit",
    "privileged",
    "read_only",
    "runtime",
    "security_opt",
    "shm_size",
    "tmpfs",
    "ulimits",
)
_FLAGS = frozenset(["write", "exec", "suid", "dev"])


def read_compose(files: Mapping[str, bytes]) -> Grants:
    """`files` are those of the compose directory. Raises UnknownGrantError for an unknown word."""
    document = yaml.safe_load(files["docker-compose.yml"])
    require_known("compose", document, ("services", "networks", "volumes", "secrets"))
    require_known("the services", document["services"], ("agentbox",))
    service = document["services"]["agentbox"]
    require_known("the service", service, (*_HARMLESS, *_READ, *_NAMESPACES))
    escalation, seccomp = security_options(service.get("security_opt", []), files)
    return Grants(
        user=str(service.get("user", "")),
        capabilities=granted_capabilities(service.get("cap_add", ()), service.get("cap_drop", ())),
        escalation=escalation,
        privileged=bool(service.get("privileged")),
        root_writable=service.get("read_only") is not True,
        seccomp=seccomp,
        mounts=(
            *(_volume(row, document, service) for row in service.get("volumes", ())),
            *(parse_tmpfs(row) for row in service.get("tmpfs", ())),
            *(_secret(row, document) for row in service.get("secrets", ())),
        ),
        devices=frozenset(row.partition(":")[0] for row in service.get("devices", ())),
        requests=_requests(service.get("deploy", {})),
        groups=frozenset(group_number(str(name)) for name in service.get("group_add", ())),
        ports=frozenset(parse_port(row) for row in service.get("ports", ())),
        environment=frozenset(service.get("environment", {})),
        secrets=frozenset(row["source"] for row in service.get("secrets", ())),
        host_namespaces=frozenset(
            name for key, name in _NAMESPACES.items() if service.get(key, "private") != "private"
        ),
        shared_network=any(
            document["networks"].get(name) != {"driver": "bridge"} for name in service["networks"]
        ),
        runtime=service.get("runtime", ""),
        limits=_limits(service),
    )


def _limits(service: Mapping[str, Any]) -> dict[str, float]:
    ulimits = service.get("ulimits", {})
    require_known("ulimits", ulimits, ("core", "nofile"))
    sizes = {"memory": "mem_limit", "swap": "memswap_limit", "shm": "shm_size"}
    limits = {name: parse_size(service[key]) for name, key in sizes.items() if key in service}
    numbers = {"cpus": "cpus", "pids": "pids_limit"}
    limits |= {name: float(service[key]) for name, key in numbers.items() if key in service}
    if "nofile" in ulimits:
        limits["nofile"] = max(ulimits["nofile"].values())
    if "core" in ulimits:
        limits["core"] = ulimits["core"]
    return {**limits, "restarts": parse_restarts(service.get("restart", "no"))}


def _volume(
    row: Mapping[str, Any], document: Mapping[str, Any], service: Mapping[str, Any]
) -> GrantedMount:
    if not isinstance(row, Mapping):
        raise UnknownGrantError(f"cannot read volume {row!r}", "")
    require_known("a volume", row, ("type", "source", "target", "read_only"))
    flags = _FLAGS - ({"write"} if row.get("read_only") else set())
    return GrantedMount(target=row["target"], source=_source(row, document, service), flags=flags)


def _source(row: Mapping[str, Any], document: Mapping[str, Any], service: Mapping[str, Any]) -> str:
    source = str(row["source"])
    if row["type"] == "bind":
        manifest = source == "./agentbox.toml" and row["target"] == str(_BOX.manifest)
        return "manifest" if manifest else f"host:{source}"
    is_own = document["volumes"].get(source) == {"name": f"{service['container_name']}-{source}"}
    return (
        f"volume:{source}"
        if row["type"] == "volume" and is_own
        else f"{row['type']}:{document['volumes'].get(source)}"
    )


def _secret(row: Mapping[str, Any], document: Mapping[str, Any]) -> GrantedMount:
    require_known("a secret", row, ("source", "target"))
    is_own = document["secrets"].get(row["source"]) == {"file": f"./secrets/{row['source']}"}
    source = (
        f"secret:{row['source']}" if is_own else f"secret:{document['secrets'].get(row['source'])}"
    )
    return GrantedMount(
        target=str(_BOX.mounted_secrets / row["target"]), source=source, flags=_FLAGS - {"write"}
    )


def _requests(deploy: Mapping[str, Any]) -> dict[str, float]:
    if not deploy:
        return {}
    require_known("deploy", deploy, ("resources",))
    require_known("deploy.resources", deploy["resources"], ("reservations",))
    require_known("reservations", deploy["resources"]["reservations"], ("devices",))
    rows = deploy["resources"]["reservations"]["devices"]
    return {row["driver"]: float("inf") if row["count"] == "all" else row["count"] for row in rows}
