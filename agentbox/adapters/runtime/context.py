"""The caller's context of a slot call: carried in a context variable, not in signatures."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agentbox.core.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A task that the control plane starts: who submitted it, whether they held scope admin, and the state of its attempts."""

    principal: str
    admin: bool
    state_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Who calls, on whose behalf, and until when. `principal` "" means the control plane itself. `session_id`: the task that the
    call is part of, else the agent at the head of the family; `trace_id`: 32 hexadecimal digits, of everything with one cause."""

    principal: str = ""
    scopes: frozenset[str] = frozenset()
    request_id: str = ""
    agent_id: str | None = None
    session_id: str | None = None
    trace_id: str | None = None
    opens_session: bool = (
        False  # what this call makes is the session: a task, by the id that its store gives it
    )
    deadline: Deadline | None = None
    submission: Submission | None = None  # set by the control plane alone
    redacted: set[str] = field(
        default_factory=set, compare=False
    )  # classes that privacy masked in what this caller wrote


CORE = CallContext(scopes=frozenset({"core"}))
_current: ContextVar[CallContext] = ContextVar("agentbox_call", default=CORE)


def current() -> CallContext:
    """The context of the call that runs now; `CORE` where nobody set one."""
    return _current.get()


@contextmanager
def as_caller(context: CallContext) -> Iterator[CallContext]:
    """Runs the body as that caller."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
