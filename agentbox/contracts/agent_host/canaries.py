"""The result of the canaries, for `/ready`."""

from datetime import datetime

from agentbox.core.records.wire import Record, record


@record
class CanaryReport(Record):
    """`at` is when the canary ended, None before the first one. `failed` names the rules that did
    not hold, or is only `canary` if it could not run; `rules` counts those that were tested.
    """

    revision: int
    at: datetime | None = None
    failed: tuple[str, ...] = ()
    rules: int = 0
