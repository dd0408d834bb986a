"""Records of tasks. A command that lists tasks imports these alone."""

from collections.abc import Mapping
from typing import Any, Literal

from agentbox.contracts.usage import ModelUsage
from agentbox.core.records.wire import Record, record

TaskState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
FINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})


@record
class Submitted(Record):
    """The response to a submitted task."""

    task_id: str
    state: TaskState


@record
class Task(Record):
    """A task: the bead that records it, read as one run. Times are RFC 3339.

    `exit` is the exit record of its agent, null until it ended or if no agent ran; `note` describes
    the outcome. `isolation` is what the sandbox enforced. `usage` is that of its agent after its
    end: `{wall_seconds, cpu_seconds, peak_memory}`; `models` its model calls, with those of its
    agent's children, null without any.
    """

    task_id: str
    state: TaskState
    name: str
    argv: tuple[str, ...]
    profile: str
    creator: str
    attempts: int
    timeout_s: float
    created_at: str
    closed_at: str | None
    agent_id: str | None
    exit: Mapping[str, Any] | None
    isolation: Mapping[str, Any] | None
    note: str
    usage: Mapping[str, Any] | None = None
    models: ModelUsage | None = None

    @property
    def final(self) -> bool:
        """Whether the task has reached a final state."""
        return self.state in FINAL
