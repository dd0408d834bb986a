"""Request and response bodies of reviews."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts.arguments import Id, Position
from agentbox.contracts.review_commits import RECORDS as COMMIT_RECORDS
from agentbox.contracts.review_commits import CommitsPage, NotTaken, TakenBody
from agentbox.contracts.usage import ModelUsage
from agentbox.core.records.bounds import bounded_text, number_range
from agentbox.core.records.wire import JsonObj, Record, record


@record
class ReviewSummary(Record):
    """Counts are of paths. `runs_by_itself`: paths that something executes automatically at their
    destination. `left_out`: paths that are never applied. `commits`: that the agent made in its
    branch and that can be taken. `usage` of the agent: `{wall_seconds, cpu_seconds, peak_memory}`,
    empty if it is no longer known; `models`: its model calls, null without any.
    """

    agent_id: str
    name: str
    digest: str
    added: int
    modified: int
    deleted: int
    sealed_at: datetime
    runs_by_itself: int
    left_out: int
    commits: int = 0
    usage: JsonObj = field(default_factory=dict)
    models: ModelUsage | None = None


@record
class Reviews(Record):
    items: tuple[ReviewSummary, ...]


@record
class ReviewChange(Record):
    """`old` and `new`: `{kind, mode, size, sha256 | leads_to}`, None if absent. `diff`: hunks
    against the current workspace, or a remark in brackets.
    """

    index: int
    path: str
    what: Literal["added", "modified", "deleted"]
    old: JsonObj | None
    new: JsonObj | None
    runs: str
    notes: tuple[str, ...]
    diff: str


@record
class ReviewPage(Record):
    """`next` is the index of the next page, None at the end. A page has fewer changes than
    requested if they are large. `left_out` is on the first page, as far as it fits; the summary has
    its count.
    """

    summary: ReviewSummary
    changes: tuple[ReviewChange, ...]
    left_out: tuple[NotTaken, ...]
    next: int | None


@record
class CommitBody(Record):
    digest: Annotated[str, bounded_text(minimum=1)]


@record
class Committed(Record):
    """`changed`: number of changed paths in the workspace."""

    agent_id: str
    digest: str
    changed: int


@record
class Discarded(Record):
    agent_id: str
    digest: str


class ReviewEndpoints(Protocol):
    """What the API serves for reviews."""

    async def list_reviews(self) -> Reviews: ...

    async def show(
        self,
        agent_id: Id,
        *,
        at: Position = 0,
        limit: Annotated[int, number_range(1, 1_000)] = 100,
    ) -> ReviewPage: ...

    async def commit(self, agent_id: Id, change: CommitBody) -> Committed: ...

    async def commits(
        self,
        agent_id: Id,
        *,
        at: Position = 0,
        limit: Annotated[int, number_range(1, 1_000)] = 100,
    ) -> CommitsPage: ...

    async def bundle(self, agent_id: Id, *, rest: bool = False) -> bytes:
        """With `rest`, the changes that have no commit are one more commit."""
        ...

    async def patches(self, agent_id: Id, *, rest: bool = False) -> bytes:
        """Likewise."""
        ...

    async def taken(self, agent_id: Id, change: TakenBody) -> Committed: ...

    async def discard(self, agent_id: Id) -> Discarded: ...


RECORDS: Mapping[str, type[Record]] = {
    **COMMIT_RECORDS,
    **{
        kind.__name__: kind
        for kind in (
            ReviewSummary,
            Reviews,
            ReviewChange,
            ReviewPage,
            CommitBody,
            Committed,
            Discarded,
        )
    },
}
