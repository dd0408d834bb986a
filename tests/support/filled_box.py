"""Something in each slot of a box, and everything that a caller can read of it."""

from typing import Any
from uuid import uuid4

from agentbox.client import BoxClient
from agentbox.core.records.wire import to_json


def fill(client: BoxClient, *, claim: bool = True) -> None:
    """Beads, pods, memory with words and vectors. `claim`: one bead has a lease of ten minutes."""
    epic, _ = client.beads.create_epic("first", data={"n": 1}, tags=("x",))
    child, _ = client.beads.create_child(epic.id, "second")
    if claim:
        client.beads.claim(child.id, "somebody", lease_id=str(uuid4()), lease_s=600)
    client.pods.write("kept/a", bytes(range(256)), content_type="application/x-own")
    client.pods.write("kept/\u00fc b", b"", content_type="text/plain")
    client.memory.store("bike", {"at": 3}, text="the red bicycle is in the shed")
    client.memory.store("cat", [1, 2], text="a cat sleeps")


def answers(client: BoxClient, until: int) -> dict[str, str]:
    """Everything that a caller can read of the slots, as JSON; the journal up to a record."""
    found: dict[str, Any] = {}
    beads = client.beads.list(limit=100).items
    found |= {f"bead {bead.id}": client.beads.show(bead.id) for bead in beads}
    found |= {f"pods {path}": client.pods.list(path).items for path in ("", "kept/")}
    found |= {f"pod {path}": client.pods.head(path) for path in ("kept/a", "kept/\u00fc b")}
    found["body"] = client.pods.read("kept/a").hex()
    found["memory"] = client.memory.list().items
    found["search"] = [
        [hit.entry.key, round(hit.score, 6)]
        for hit in client.memory.search("where is the red bicycle")
    ]
    found["journal"] = [
        event for event in client.events.read(limit=1000).events if event.seq <= until
    ]
    return {name: to_json(value) for name, value in found.items()}
