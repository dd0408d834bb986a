"""How programs of a sandbox end, for their records."""

import errno
from typing import Final

from agentbox.agents.runs.exits import signal_name
from agentbox.contracts.sandboxes import ExecExit, ExecReason
from agentbox.core import clock
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.spec import ProgramEnded

# As shells report a program that does not exist, and one that cannot be executed.
NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126


def exit_of(ended: ProgramEnded, *, is_late: bool) -> ExecExit:
    """`is_late`: its time was up."""
    if ended.code is None and ended.signal is None:
        return over()
    reason: ExecReason = "exit" if ended.signal is None else "signal"
    reason = "timeout" if is_late else reason
    return ExecExit(
        code=ended.code, signal=signal_name(ended.signal), reason=reason, at=clock.now()
    )


def over() -> ExecExit:
    """It ended with its sandbox."""
    return ExecExit(code=None, signal=None, reason="sandbox-over", at=clock.now())


def not_started(error: SpawnFailed) -> ExecExit:
    """It could not be started."""
    code = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
    return ExecExit(
        code=code if error.stage == "exec" else None,
        signal=None,
        reason="not-started",
        at=clock.now(),
        detail=error.reason,
    )
