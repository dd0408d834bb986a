"""Reasons of programs that cannot start, recorded where `up` and the seal read them."""

from agentbox.box.supervision.boot_event_log import read_events
from agentbox.box.supervision.boot_record import read_boot_record
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths

FAILED = "ProgramFailed"


def report_program_failure(paths: Paths, program: str, error: AgentboxError) -> None:
    """Emits the event `ProgramFailed`. Does nothing without a boot record."""
    record = read_boot_record(paths)
    if record is not None:
        record.log(paths).emit(FAILED, program=program, reason=error.message, fix=error.hint)


def last_program_failure(paths: Paths, program: str) -> tuple[str, str]:
    """The last failure of the program in this boot: reason and fix, "" without one."""
    failures = [
        event
        for event in read_events(paths)
        if event["event"] == FAILED and event["program"] == program
    ]
    return (str(failures[-1]["reason"]), str(failures[-1]["fix"])) if failures else ("", "")
