"""What model calls used: reports, and the usage in the records of tasks and reviews."""

from collections.abc import Mapping
from typing import Annotated, Literal, Protocol

from agentbox.core.records.bounds import number_range, schema_keywords
from agentbox.core.records.wire import Record, record

UsageGroup = Literal["agent", "task", "session", "model", "day"]
GROUPS: tuple[UsageGroup, ...] = ("agent", "task", "session", "model", "day")
MAX_ROWS = 1_000

StartTime = Annotated[str, schema_keywords(format="date-time")]  # RFC 3339


@record
class ModelUsage(Record):
    """Model calls, added up. `input_tokens` includes those of the cache. `cost_micros` in
    millionths of `currency`, null if no call has a price; `unpriced` calls are not in it.
    `estimated` calls were charged by an estimate, calls in flight by their worst case.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_micros: int | None
    currency: str
    unpriced: int
    estimated: int


@record
class UsageRow(ModelUsage):
    """`key`: name in [agents] or id of the agent, id of the task or session ("" for calls without
    one, and of sessions that are forgotten), `<provider>/<model>`, or the day in UTC.
    """

    key: str


@record
class UsageReport(Record):
    """`items` by cost, then tokens, largest first; days in order. `complete`: no row was left out.
    `total`: of all calls, one row a currency.
    """

    by: UsageGroup
    since: str | None
    items: tuple[UsageRow, ...]
    complete: bool
    total: tuple[ModelUsage, ...]


class UsageEndpoints(Protocol):
    """What the API serves for usage."""

    async def report(
        self,
        *,
        by: UsageGroup = "agent",
        since: StartTime | None = None,
        limit: Annotated[int, number_range(1, MAX_ROWS)] = 100,
    ) -> UsageReport: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (ModelUsage, UsageRow, UsageReport)
}
