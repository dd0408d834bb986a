"""Tasks: beads that run an agent."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Protocol

from agentbox.contracts.arguments import Cursor, Id, PageSize, Position
from agentbox.contracts.beads import MAX_TITLE, PRIORITY
from agentbox.contracts.orchestrator import AgentSpec, RunSeconds, StreamItem
from agentbox.contracts.task_records import Submitted, Task
from agentbox.core.records.bounds import bounded_text, number_range
from agentbox.core.records.page import Page
from agentbox.core.records.wire import Record, record

DEFAULT_TIMEOUT = 600.0  # seconds, of one-shot runs


@record
class TaskBody(Record):
    """A new task. `input` becomes the program's standard input; `timeout_s` is wall clock time.
    `attached`: the submitter reads its log, and output waits while that reader is behind.
    """

    spec: AgentSpec
    input: bytes | None = None
    timeout_s: RunSeconds = DEFAULT_TIMEOUT
    priority: Annotated[int, number_range(*PRIORITY)] = 5
    not_before: datetime | None = None
    dedup_key: Annotated[str | None, bounded_text(maximum=MAX_TITLE)] = None
    attached: bool = False


class TaskEndpoints(Protocol):
    """What the API serves for tasks."""

    async def submit(self, task: TaskBody) -> Submitted: ...

    async def list_tasks(
        self, *, limit: PageSize = 100, cursor: Cursor | None = None
    ) -> Page[Task]: ...

    async def get(self, id: Id) -> Task: ...

    def logs(
        self, id: Id, *, since: Position = 0, follow: bool = True
    ) -> AsyncIterator[StreamItem]: ...

    async def cancel(self, id: Id) -> Task: ...
