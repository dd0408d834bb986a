"""The choices of the schema that this release can serve. The others are final names for what comes later.

Rule E606 refuses the others before anything is built. A test holds the rows of slots equal to the registry of adapters,
which lies above this layer and refuses again at boot.
"""

from collections.abc import Mapping
from typing import Final

AVAILABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "adapters.beads.use": ("local-sqlite", "off"),
    "adapters.pods.use": ("off",),
    "adapters.memory.use": ("off",),
    "adapters.events.use": ("local-jsonl", "off"),
    "adapters.orchestrator.use": ("local-process", "off"),
    "api.auth": ("token",),
    "image.source": ("debian",),
    "mesh.mode": ("standalone",),
    "privacy.mode": ("off", "rules"),
}
