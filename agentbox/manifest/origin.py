"""The origin of an effective value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.load import Manifest

Kind = Literal["written", "default", "inherited", "implied"]


@dataclass(frozen=True)
class ValueOrigin:
    """`key` is where the value is written, "" for a default; `line` is 0 if it is not written."""

    kind: Kind
    key: str = ""
    line: int = 0

    def __str__(self) -> str:
        """`line 12`, `default`, `limits.memory, line 30`, `limits.memory, default`."""
        location = f"line {self.line}" if self.line else "default"
        return location if self.kind in ("written", "default") else f"{self.key}, {location}"


def origin(manifest: Manifest, path: str, values: Mapping[str, Any]) -> ValueOrigin:
    """The origin of a real key path; `values` are the effective ones. Raises KeyError if it does
    not exist.
    """
    spec, positions = keys()[generic_path(path)], manifest.positions
    if deciding_key := _deciding_key(manifest, path, values):
        return ValueOrigin("implied", deciding_key, positions[deciding_key].line)
    if path in positions:
        return ValueOrigin("written", path, positions[path].line)
    if spec.inherits:
        return ValueOrigin(
            "inherited",
            spec.inherits,
            positions[spec.inherits].line if spec.inherits in positions else 0,
        )
    return ValueOrigin("default")


def _deciding_key(manifest: Manifest, path: str, values: Mapping[str, Any]) -> str:
    """The key that overrides this one: a slot that is off is not required, a token file clears the
    token's variable.
    """
    if path.startswith("adapters.") and path.endswith(".required"):
        use = f"{path.removesuffix('required')}use"
        return use if values[use] == "off" and use in manifest.positions else ""
    if path == "mesh.token_env" and "mesh.token_file" in manifest.positions:
        return "mesh.token_file"
    return ""
