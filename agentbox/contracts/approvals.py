"""Request and response bodies of approvals."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record


@record
class Approval(Record):
    """`parameters`: those of the action, as JSON text; `words`: the agent's reason, quoted. Text
    from the agent is escaped. `used`: approved and consumed. `by` "" is the box itself.
    """

    id: str
    agent_id: str
    name: str
    kind: Literal["tool", "host", "spawn"]
    value: str
    parameters: str
    digest: str
    words: str
    state: Literal["waiting", "approved", "denied", "used"]
    by: str
    reason: str
    asked_at: datetime
    expires_at: datetime
    decided_at: datetime | None


@record
class Approvals(Record):
    items: tuple[Approval, ...]


@record
class Verdict(Record):
    verdict: Literal["approve", "deny"]
    reason: Annotated[str, bounded_text(maximum=1000)] = ""


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (Approval, Approvals, Verdict)
}
