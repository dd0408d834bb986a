"""Errors of a restore."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from agentbox.core.errors import AgentboxError, ExitCode

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def damaged(snapshot: str, file: str, why: str) -> AgentboxError:
    """Exit 1."""
    return AgentboxError(
        f"cannot restore {snapshot}: {file}: {why}",
        "The box was not touched. Take another snapshot, or another copy of the repository.",
        exit_code=ExitCode.BAD,
    )


def no_room(snapshot: str, needed: int, free: int) -> AgentboxError:
    """Exit 3; bytes."""
    return AgentboxError(
        f"cannot restore {snapshot}: it needs {needed} bytes, and {free} are free",
        "The box was not touched. Free room where its volumes are, then restore again.",
        exit_code=ExitCode.PREREQUISITE,
    )


@contextmanager
def disk_errors(doing: str, *, stopped: bool = False) -> Iterator[None]:
    """Turns an OSError of the new volumes into an AgentboxError (exit 3). `stopped`: the box does
    not run any more.
    """
    touched = "" if stopped else "The box was not touched. "
    try:
        yield
    except OSError as error:
        why = "the disk is full" if error.errno in _NO_ROOM else error.strerror or str(error)
        raise AgentboxError(
            f"cannot {doing}: {why}",
            f"{touched}Free room or repair the disk of its volumes.",
            exit_code=ExitCode.PREREQUISITE,
        ) from error
