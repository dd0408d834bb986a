"""What the rows of a store are, for people: singular and plural, by the path of the store."""

from collections.abc import Mapping
from typing import Final

AGENTS: Final = "orchestrator/agents.db"
ROWS: Final[Mapping[str, tuple[str, str]]] = {
    "beads/beads.db": ("bead", "beads"),
    "pods/index.db": ("pod object", "pod objects"),
    "memory/memory.db": ("memory entry", "memory entries"),
    AGENTS: ("agent", "agents"),
}
