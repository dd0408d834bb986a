"""Events of sandboxes in the journal, beside those of the agent that each one is.

Words of a command may be secrets, so only the program's name is shown; the digest says whether two
commands are the same.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.contracts.sandboxes import ExecInfo
from agentbox.core.visible_text import escape_invisible

MAX_PROGRAM: Final = 256  # characters


def sandbox_created(entry: AgentRecord) -> LifecycleEvent:
    """The sandbox runs. `by`: the caller; `ttl_s`: seconds."""
    return LifecycleEvent(
        "sandbox.created",
        entry.agent_id,
        {
            "name": entry.spec.name,
            "profile": entry.spec.profile,
            "by": entry.principal,
            "ttl_s": entry.limits.wall_seconds,
        },
        entry.session_id,
        entry.trace_id,
    )


def sandbox_exec(entry: AgentRecord, info: ExecInfo, argv_sha256: str) -> LifecycleEvent:
    """A program has ended, or could not be started. `ms`: from the request to the end."""
    assert info.exit is not None
    exit: dict[str, Any] = {
        "code": info.exit.code,
        "signal": info.exit.signal,
        "reason": info.exit.reason,
    }
    return LifecycleEvent(
        "sandbox.exec",
        entry.agent_id,
        {
            "n": info.n,
            "program": escape_invisible(info.argv[0])[:MAX_PROGRAM],
            "argv_sha256": argv_sha256,
            "exit": exit,
            "ms": max(0, round(1000 * (info.exit.at - info.started_at).total_seconds())),
        },
        entry.session_id,
        entry.trace_id,
    )


def sandbox_ended(entry: AgentRecord, programs: int | None) -> LifecycleEvent:
    """The sandbox has ended, and all of its programs. `programs`: how many were started in it; None
    if agent-host ended meanwhile."""
    return LifecycleEvent(
        "sandbox.ended",
        entry.agent_id,
        {
            "name": entry.spec.name,
            "reason": "" if entry.exit is None else entry.exit.reason,
            "programs": programs,
        },
        entry.session_id,
        entry.trace_id,
    )


def argv_digest(argv: Sequence[str]) -> str:
    """Bare hex over the words, each followed by a NUL, as in /proc/<pid>/cmdline."""
    words = "".join(f"{word}\0" for word in argv)
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
