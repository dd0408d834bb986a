"""Which names of the manifest are compose secrets."""

from collections.abc import Mapping
from typing import Any

_SUFFIXES = ("_env", ".env_var")


def secret_names(values: Mapping[str, Any], classes: Mapping[str, str]) -> tuple[str, ...]:
    """Sorted: each non-empty `*_env` and `env_var`, whatever boot and live keys say, and each name in
    `agents.*.secrets`. A table whose own gate (`enabled`, of class rebuild) is off needs none: its feature is not in
    the image. `values` are effective values by key path, `classes` the apply class of each."""
    named = [str(value) for key, value in values.items() if key.endswith(_SUFFIXES) and not _shut(key, values, classes)]
    of_agents = [
        str(name)
        for key, names in values.items()
        if key.startswith("agents.") and key.endswith(".secrets")
        for name in names
    ]
    return tuple(sorted({name for name in (*named, *of_agents) if name}))


def _shut(key: str, values: Mapping[str, Any], classes: Mapping[str, str]) -> bool:
    parts = key.split(".")
    gates = [".".join((*parts[:end], "enabled")) for end in range(1, len(parts))]
    return any(classes.get(gate) == "rebuild" and values[gate] is False for gate in gates)
