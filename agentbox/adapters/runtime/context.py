"""The caller context of a slot call, carried in a context variable."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from agentbox.core.deadline import Deadline
from agentbox.core.frozen import frozen_slots


@frozen_slots
class TaskSubmission:
    """A task that the control plane starts: its submitter, whether the submitter has scope admin,
    and the state of its attempts."""

    principal: str
    admin: bool
    state_id: str


@frozen_slots
class CallContext:
    """The caller, the agent it acts for, and the deadline. An empty `principal` is the control
    plane. `session_id` is the task of the call, else the root agent of the family; `trace_id` is 32
    hexadecimal digits that group all calls of one cause."""

    principal: str = ""
    scopes: frozenset[str] = frozenset()
    request_id: str = ""
    agent_id: str | None = None
    session_id: str | None = None
    trace_id: str | None = None
    opens_session: bool = (
        False  # the created bead is the session: a task, identified by its bead id
    )
    deadline: Deadline | None = None
    program: str = ""  # the program of this box whose connection to agent-host it is; "": the API
    submission: TaskSubmission | None = None  # set by the control plane only
    # privacy classes that were masked in this caller's input
    redacted: set[str] = field(default_factory=set, compare=False)


CORE = CallContext(scopes=frozenset({"core"}))
_current: ContextVar[CallContext] = ContextVar("agentbox_call", default=CORE)


def current() -> CallContext:
    """Return the context of the current call; `CORE` if none is set."""
    return _current.get()


@contextmanager
def as_caller(context: CallContext) -> Iterator[CallContext]:
    """Run the body with this caller context."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
