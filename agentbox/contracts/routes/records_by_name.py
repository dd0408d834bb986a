"""All records of requests and responses by the names that routes give them."""

from collections.abc import Mapping
from typing import Any

from agentbox.contracts import (
    approvals,
    backups,
    beads,
    box,
    event_search,
    events,
    generation,
    logins,
    mcp,
    memory,
    mesh,
    orchestrator,
    reviews,
    sandboxes,
    sessions,
    skills,
    states,
    tokens,
    usage,
    users,
)
from agentbox.contracts.beads import Bead
from agentbox.contracts.events import Appended, Head
from agentbox.contracts.memory import Hits, MemoryEntry
from agentbox.contracts.mesh import MeshSession
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.contracts.routes.registry import RESOURCES
from agentbox.contracts.sandboxes import Sandbox
from agentbox.contracts.sessions import Session
from agentbox.contracts.task_records import Submitted, Task
from agentbox.core.records.page import Page
from agentbox.core.records.wire import Record, record

_MODULES = (
    *(beads, memory, events, event_search, orchestrator, tokens, mesh, reviews, approvals, states),
    *(usage, skills, sandboxes, sessions, mcp, backups, generation, users, logins),
    box,
)


@record
class PageTask(Record):
    """A page of tasks."""

    items: tuple[Task, ...]
    next_cursor: str | None = None


RECORDS_BY_NAME: Mapping[str, Any] = {
    **{name: kind for module in _MODULES for name, kind in module.RECORDS.items()},
    **{name: kind for resource in RESOURCES for name, kind in resource.bodies.items()},
    **{kind.__name__: kind for kind in (Hits, Appended, Head, Submitted, Task)},
    "Page[Bead]": Page[Bead],
    "Page[AgentInfo]": Page[AgentInfo],
    "Page[Task]": PageTask,
    "Page[Sandbox]": Page[Sandbox],
    "Page[Session]": Page[Session],
    "Page[MemoryEntry]": Page[MemoryEntry],
    "Page[MeshSession]": Page[MeshSession],
}
