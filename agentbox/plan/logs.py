"""How much the programs of features may log to files, so that `/var/log` never fills."""

from collections.abc import Sequence
from dataclasses import replace

from agentbox.plan.model import Program

SHARE = 0.6  # of resources.log_size; the rest is for what rotates by itself or is opened by hand
BACKUPS = 1


def with_log_sizes(programs: Sequence[Program], log_size: int) -> tuple[Program, ...]:
    """Equal parts for each program that logs to a file; bytes. Sum of `log_bytes * (log_backups + 1)` <= the share."""
    count = sum(program.log == "file" for program in programs)
    if not count:
        return tuple(programs)
    size = int(log_size * SHARE) // (count * (BACKUPS + 1))
    return tuple(
        replace(program, log_bytes=size, log_backups=BACKUPS) if program.log == "file" else program
        for program in programs
    )
