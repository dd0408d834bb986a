"""From what the kernel said about a leader to the record that callers see."""

import signal

from agentbox.contracts.orchestrator import AgentState, ExitReason, ExitRecord
from agentbox.core import clock
from agentbox.sandbox.spec import ProcessEnded

_CAUSES: dict[str, ExitReason] = {"timeout": "timeout", "limit": "limit", "launcher": "lost"}


def exit_record(ended: ProcessEnded, *, stop_requested: bool) -> ExitRecord:
    """The real code or signal, and the reason: a stop that was asked for is `terminated`, whatever the code."""
    reason = _CAUSES.get(ended.cause)
    if reason is None:
        reason = "terminated" if stop_requested else "exit" if ended.signal is None else "signal"
    return ExitRecord(
        code=ended.code, signal=_signal_name(ended.signal), reason=reason, at=clock.now()
    )


def lost_exit() -> ExitRecord:
    """Of a life whose end nobody saw."""
    return ExitRecord(code=None, signal=None, reason="lost", at=clock.now())


def final_state(exit_record: ExitRecord) -> AgentState:
    """The state of an agent that is not started again."""
    if exit_record.reason == "lost":
        return "lost"
    return "failed" if exit_record.reason in ("timeout", "limit", "restart-intensity") else "exited"


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"  # a real-time signal
