"""E606: a valid name for something that comes later."""

from collections.abc import Iterator

from agentbox.features import AVAILABLE
from agentbox.manifest import Finding
from agentbox.rules.view import View

CODE, SINCE = "E606", "0.1"
TITLE = "choice that this release does not have"
WHY = """The schema is final and names implementations and modes that a later release brings. Accepting one today would
build a box that cannot start, or that silently does less."""
READS = (
    "adapters.beads.use",
    "adapters.pods.use",
    "adapters.memory.use",
    "adapters.events.use",
    "adapters.orchestrator.use",
    "api.auth",
    "image.source",
    "mesh.mode",
    "privacy.mode",
)
BAD = """
[adapters.beads]
use = "external-http"
endpoint = "https://beads.example"
"""
GOOD = """
[adapters.beads]
use = "local-sqlite"
"""


def check(view: View) -> Iterator[Finding]:
    """One finding a key."""
    for key, served in AVAILABLE.items():
        if view[key] in served:
            continue
        listed = ", ".join(f'"{choice}"' for choice in served)
        yield view.finding(
            key,
            message=f'{key} = "{view[key]}"{"" if view.written(key) else " (the default)"} is not in this release of agentbox',
            remedy=f"Choose one of {listed}.",
        )
