"""Shared helpers of the beads suite."""

import uuid
from typing import Any

from agentbox.contracts.beads import Bead, BeadSpec

LEASE = "5f1c2a3b-0000-4000-8000-000000000001"
EXPIRY = 61  # seconds: one more than the default lease


def new_lease_id() -> str:
    """Return a new lease id."""
    return str(uuid.uuid4())


def spec(title: str = "t", **members: Any) -> BeadSpec:
    """Return a spec by the creator `c`."""
    return BeadSpec(**{"title": title, "creator": "c", **members})


async def make_epic(adapter: Any, count: int, **members: Any) -> tuple[Bead, list[Bead]]:
    """Create an epic with children `t0`, `t1`, ..."""
    epic, _ = await adapter.create_epic(spec("epic"))
    return epic, [
        (await adapter.create_child(epic.id, spec(f"t{n}", **members)))[0] for n in range(count)
    ]


async def make_task(adapter: Any, **members: Any) -> Bead:
    """Create a child of a new epic."""
    return (await make_epic(adapter, 1, **members))[1][0]


async def ready_ids(adapter: Any, **arguments: Any) -> list[str]:
    """Return the ids from `ready`, in order."""
    return [bead.id for bead in (await adapter.ready(**arguments)).items]
