"""Counts of denied actions of agents, as kept by the agent host."""

from agentbox.core.records.wire import Record, record


@record
class DenialCount(Record):
    """`agent` is a name; `count` is since the peer started, so it may decrease. `denial_class`:
    benign, policy or attack.
    """

    agent: str
    layer: str
    rule: str
    count: int
    denial_class: str = "policy"


@record
class DenialCounts(Record):
    """All counts. Two with the same `revision` are equal."""

    revision: int
    totals: tuple[DenialCount, ...]
