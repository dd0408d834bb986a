"""Counts of what agents were refused, as who runs them keeps them."""

from agentbox.core.records.wire import Record, record


@record
class DenialCount(Record):
    """`agent` is a name; `count` is since the peer began, so it may fall to a smaller one. `denial_class`: benign, policy
    or attack."""

    agent: str
    layer: str
    rule: str
    count: int
    denial_class: str = "policy"


@record
class DenialCounts(Record):
    """All that there are. Two with one `revision` are the same."""

    revision: int
    totals: tuple[DenialCount, ...]
