"""[meta]: the version of the schema, and the box's name."""

from dataclasses import dataclass
from typing import Literal

from agentbox.manifest.types import Name, key


@dataclass(frozen=True, kw_only=True)
class MetaTable:
    """The identity of this box."""

    schema_version: Literal[1] = key(1, "rebuild", required=True)
    name: Name = key("agentbox", "recreate")
    dev: bool = key(False, "boot")
