"""Bodies and answers of approvals."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record


@record
class Approval(Record):
    """`parameters`: those of the action, as JSON text; `words`: what the agent says of it, quoted. All of the agent's making
    is escaped. `used`: approved, and done with. `by` "" is the box itself."""

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
