"""Which class an implementation of a slot belongs to: local, external, or off."""

from collections.abc import Mapping
from typing import Final, Literal

SlotClass = Literal["local", "external", "off"]

CLASSES: Final[Mapping[tuple[str, str], SlotClass]] = {
    ("beads", "local-sqlite"): "local",
    ("beads", "external-http"): "external",
    ("beads", "external-pg"): "external",
    ("beads", "off"): "off",
    ("pods", "local-fs"): "local",
    ("pods", "external-solid"): "external",
    ("pods", "off"): "off",
    ("memory", "local-sqlite"): "local",
    ("memory", "external-pg"): "external",
    ("memory", "off"): "off",
    ("events", "local-jsonl"): "local",
    ("events", "external-http"): "external",
    ("events", "off"): "off",
    ("orchestrator", "local-process"): "local",
    ("orchestrator", "external-stdio"): "external",
    ("orchestrator", "off"): "off",
}
"""A test holds the keys equal to the schema and to the registry of adapters."""


def slot_class(slot: str, use: str) -> SlotClass:
    """The class of that implementation. Raises KeyError for one that the schema does not have."""
    return CLASSES[slot, use]
