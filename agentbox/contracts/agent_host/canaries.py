"""What the canaries of who runs the agents found, for `/ready`."""

from datetime import datetime

from agentbox.core.records.wire import Record, record


@record
class CanaryReport(Record):
    """`at` is when the canary ended, None before the first. `failed` names the rules that did not hold, and is the one
    word `canary` where it could not run; `rules` counts those that were asked of it."""

    revision: int
    at: datetime | None = None
    failed: tuple[str, ...] = ()
    rules: int = 0
