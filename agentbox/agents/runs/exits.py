"""Exit records from the exit status of the agent's leader."""

import signal

from agentbox.contracts.orchestrator import AgentState, ExitReason, ExitRecord
from agentbox.core import clock
from agentbox.sandbox.spec import ProcessEnded

_CAUSES: dict[str, ExitReason] = {"timeout": "timeout", "limit": "limit", "launcher": "lost"}


def exit_record(ended: ProcessEnded, *, stop_requested: bool) -> ExitRecord:
    """Code or signal, and the reason: a requested stop is `terminated`, whatever the code."""
    reason = _CAUSES.get(ended.cause)
    if reason is None:
        reason = "terminated" if stop_requested else "exit" if ended.signal is None else "signal"
    return ExitRecord(
        code=ended.code, signal=signal_name(ended.signal), reason=reason, at=clock.now()
    )


def lost_exit() -> ExitRecord:
    """Of a generation whose end was not observed."""
    return ExitRecord(code=None, signal=None, reason="lost", at=clock.now())


def final_state(exit_record: ExitRecord) -> AgentState:
    """The state of an agent that is not restarted."""
    if exit_record.reason == "lost":
        return "lost"
    return "failed" if exit_record.reason in ("timeout", "limit", "restart-intensity") else "exited"


def signal_name(number: int | None) -> str | None:
    """The name of a signal, `SIG<n>` for a real-time one; None for None."""
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"  # a real-time signal
