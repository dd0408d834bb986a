"""[meta]: the version of the schema, and the box's name."""

from typing import Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import Name


@frozen
class MetaTable:
    """Who this box is."""

    schema_version: Literal[1] = key(1, "rebuild", required=True, doc="Version of this schema.")
    name: Name = key(
        "agentbox", "recreate", doc="Container name, host name, volume prefix, mesh display name."
    )
    dev: bool = key(
        False,
        "boot",
        doc="A development box: permits the profile `unrestricted`; shown in `/health` "
        "and as a gauge.",
    )
