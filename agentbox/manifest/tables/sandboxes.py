"""[sandboxes]: programs that are run in agents without one of their own."""

from typing import Annotated

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import Size


@frozen
class SandboxesTable:
    """Bounds of sandboxes. Each of them counts in `adapters.orchestrator.max_agents` too."""

    max: Annotated[int, Range(0, 1_000)] = key(
        32, "live", doc="Sandboxes at the same time; 0 = none."
    )
    ttl_seconds: Annotated[int, Range(60, 86_400)] = key(
        3600, "live", doc="Default and maximum of their life.", unit="seconds"
    )
    max_exec: Annotated[int, Range(1, 256)] = key(
        16, "live", doc="Programs at the same time in one sandbox."
    )
    max_file: Size = key(Size("64MiB"), "live", doc="A file that one call reads or writes.")
