"""Where an effective value comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentbox.manifest.keys import generic, keys
from agentbox.manifest.load import Manifest

Kind = Literal["written", "default", "inherited", "implied"]


@dataclass(frozen=True)
class Origin:
    """`key` is where the value is written or, for a default, nothing; `line` is 0 where nothing is written."""

    kind: Kind
    key: str = ""
    line: int = 0

    def __str__(self) -> str:
        """`line 12`, `default`, `limits.memory, line 30`, `limits.memory, default`."""
        at = f"line {self.line}" if self.line else "default"
        return at if self.kind in ("written", "default") else f"{self.key}, {at}"


def origin(manifest: Manifest, path: str, values: Mapping[str, Any]) -> Origin:
    """Of a real key path; `values` are the effective ones. Raises KeyError for a key that does not exist."""
    spec, where = keys()[generic(path)], manifest.where
    if decider := _decider(manifest, path, values):
        return Origin("implied", decider, where[decider].line)
    if path in where:
        return Origin("written", path, where[path].line)
    if spec.inherits:
        return Origin("inherited", spec.inherits, where[spec.inherits].line if spec.inherits in where else 0)
    return Origin("default")


def _decider(manifest: Manifest, path: str, values: Mapping[str, Any]) -> str:
    """The key that overrules this one: a slot that is off is not required, a token file clears the token's variable."""
    if path.startswith("adapters.") and path.endswith(".required"):
        use = f"{path.removesuffix('required')}use"
        return use if values[use] == "off" and use in manifest.where else ""
    if path == "mesh.token_env" and "mesh.token_file" in manifest.where:
        return "mesh.token_file"
    return ""
