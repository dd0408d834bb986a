"""Names in the manifest that are compose secrets, and names of plain variables that are passed
through.
"""

from collections.abc import Mapping
from typing import Any

_SUFFIXES = ("_env", ".env_var")
_OWNERS = ("agents.", "mcp.servers.")
_STORAGE = "backup.credentials"
_BRIDGE = "adapters.orchestrator.env"


def secret_names(values: Mapping[str, Any], classes: Mapping[str, str]) -> tuple[str, ...]:
    """Sorted: each non-empty `*_env` and `env_var`, independent of boot and live keys, each name in
    `adapters.orchestrator.env` (it may be a token), in `backup.credentials`, and in the `secrets`
    of agents and MCP servers. A table whose gate
    (`enabled`, of class rebuild) is off needs none, since its feature is not in the image. `values`
    are effective values by key path, `classes` the apply class of each.
    """
    candidates = [
        str(value)
        for key, value in values.items()
        if key.endswith(_SUFFIXES) and not _is_gated_off(key, values, classes)
    ]
    return tuple(
        sorted(
            {
                name
                for name in (
                    *candidates,
                    *values.get(_BRIDGE, ()),
                    *values.get(_STORAGE, ()),
                    *_values(values, ".secrets"),
                )
                if name
            }
        )
    )


def passed_names(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Sorted: each name in `agents.*.env` and `mcp.servers.*.env`, also of disabled ones, since
    `enabled` is a live key.
    """
    return tuple(sorted(set(_values(values, ".env"))))


def _values(values: Mapping[str, Any], suffix: str) -> list[str]:
    """Of all agents and MCP servers."""
    rows = (
        names for key, names in values.items() if key.startswith(_OWNERS) and key.endswith(suffix)
    )
    return [str(name) for names in rows for name in names]


def _is_gated_off(key: str, values: Mapping[str, Any], classes: Mapping[str, str]) -> bool:
    parts = key.split(".")
    gates = [".".join((*parts[:end], "enabled")) for end in range(1, len(parts))]
    return any(classes.get(gate) == "rebuild" and values[gate] is False for gate in gates)
