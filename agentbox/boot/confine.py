"""The process engine has no read-only root: Stage A confines itself, and with it everything it will start."""

import errno
import os
from pathlib import Path

from agentbox.boot import landlock
from agentbox.boot.errors import BootError
from agentbox.plan.model import Plan
from agentbox.settings import Paths

_DEVICES = (
    Path("/dev/null"),
    Path("/dev/zero"),
    Path("/dev/full"),
    Path("/dev/tty"),
    Path("/dev/ptmx"),
    Path("/dev/pts"),
)
_PROCESSES = Path("/proc")  # whose own permissions hold: an agent's out-of-memory score is raised there
_STANDARD = (0, 1, 2)


def confine(paths: Paths, plan: Plan) -> None:
    """Writes are possible below the prefix only (a root of the plan that is a link, such as a mounted project, counts
    with its target), on the usual devices, in /proc and on the log that the box was given. Raises BootError without Landlock.
    """
    if landlock.abi() == 0:
        raise BootError(
            "cannot confine the box to its folder: this kernel has no Landlock",
            "Use a container engine (`agentbox up --engine docker`), or a kernel from 5.13 on with Landlock enabled.",
        )
    landlock.no_new_privileges()
    roots = [paths.at(root).resolve() for root in plan.writable_roots]
    landlock.allow_writes_only_in([paths.prefix.resolve(), *roots, *_DEVICES, _PROCESSES, *_given_files()])


def _given_files() -> list[Path]:
    """Standard streams that are regular files: supervisord opens `/dev/fd/1` again by its path."""
    return [Path(f"/proc/self/fd/{number}").resolve() for number in _STANDARD if _is_regular(number)]


def _is_regular(number: int) -> bool:
    try:
        return os.path.isfile(f"/proc/self/fd/{number}")  # noqa: PTH113  (follows the link to the open file)
    except OSError:
        return False


def writable(folder: Path) -> bool:
    """True when a file can be made in that folder; it is removed again. Raises OSError for an unexpected refusal."""
    probe = folder / f".agentbox-probe-{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return False
        raise
    os.close(descriptor)
    probe.unlink()
    return True
