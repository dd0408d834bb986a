"""Request and response bodies of approvals."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts.arguments import Id
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


class ApprovalEndpoints(Protocol):
    """What the API serves for approvals."""

    async def list_approvals(self) -> Approvals: ...

    async def get(self, id: Id) -> Approval: ...

    async def decide(self, id: Id, verdict: Verdict) -> Approval: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (Approval, Approvals, Verdict)
}
