"""Log sizes of feature programs, so that `/var/log` never fills up."""

from collections.abc import Sequence
from dataclasses import replace

from agentbox.plan.model import Program

SHARE = 0.6  # of resources.log_size; the rest is for other logs
BACKUPS = 1


def with_log_sizes(programs: Sequence[Program], log_size: int) -> tuple[Program, ...]:
    """Equal shares in bytes for all programs that log to a file. Sum of `log_bytes * (log_backups +
    1)` <= the share.
    """
    count = sum(program.log == "file" for program in programs)
    if not count:
        return tuple(programs)
    size = int(log_size * SHARE) // (count * (BACKUPS + 1))
    return tuple(
        replace(program, log_bytes=size, log_backups=BACKUPS) if program.log == "file" else program
        for program in programs
    )
