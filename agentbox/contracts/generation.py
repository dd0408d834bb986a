"""The generation that runs: whether it is held, and what its stores contain."""

from collections.abc import Mapping
from typing import Protocol

from agentbox.core.records.wire import Record, record


@record
class StoreState(Record):
    """One store: `migration` is the number of the last one applied, `rows` the number of its rows:
    beads, objects, entries without an expiry, or agents; null for a store of other things.
    """

    migration: int
    rows: int | None


@record
class GenerationState(Record):
    """`stores` by their path below the state. `journal_seq` and `journal_hash` are the last record;
    -1 and zeros for an empty journal.
    """

    held: bool
    generation: int
    stores: Mapping[str, StoreState]
    journal_seq: int
    journal_hash: str


@record
class Trial(Record):
    """How an agent that runs `true` ended. `reason` is "" if it exited with 0."""

    code: int | None
    reason: str


class GenerationEndpoints(Protocol):
    """What the API serves for upgrades."""

    async def show(self) -> GenerationState: ...

    async def release(self) -> GenerationState: ...

    async def try_agent(self) -> Trial: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (StoreState, GenerationState, Trial)
}
