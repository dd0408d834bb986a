"""The process engine has no read-only root: Stage A confines itself and everything it starts."""

import errno
import os
from pathlib import Path

from agentbox.box.boot.errors import BootError
from agentbox.core.files.atomic import probe_file
from agentbox.core.linux import landlock_writes
from agentbox.core.linux.path_opener import OpenDenied, resolve_root
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

_DEVICES = (
    Path("/dev/null"),
    Path("/dev/zero"),
    Path("/dev/full"),
    Path("/dev/tty"),
    Path("/dev/ptmx"),
    Path("/dev/pts"),
)
_PROCESSES = Path(
    "/proc"
)  # its own permissions apply: an agent's out-of-memory score is raised there
_STANDARD = (0, 1, 2)


def confine(paths: Paths, plan: Plan) -> None:
    """Allows writes only below the prefix (a root of the plan that is a link, such as a mounted
    project, counts with its target), on the usual devices, in /proc and on the log of the box.
    Raises BootError without Landlock.
    """
    if landlock_writes.abi() == 0:
        raise BootError(
            "cannot confine the box to its directory: this kernel has no Landlock",
            "Use a container engine (`agentbox up --engine docker`), or a kernel from "
            "5.13 on with Landlock enabled.",
        )
    landlock_writes.set_no_new_privileges()
    box_roots = (str(paths.prefix), str(paths.workspace))
    roots = [
        Path(resolve_root(str(paths.resolve(root)), box_roots)) for root in plan.writable_roots
    ]
    try:
        landlock_writes.restrict_writes(
            [paths.prefix.resolve(), *roots, *_DEVICES, _PROCESSES, *_standard_files()]
        )
    except OpenDenied as error:
        raise BootError(
            f"cannot confine the box to its directory: {error.strerror}",
            "Remove the link, or mount its target.",
        ) from error


def _standard_files() -> list[Path]:
    """Standard streams that are regular files: supervisord opens `/dev/fd/1` again by its path."""
    return [
        Path(f"/proc/self/fd/{number}").resolve() for number in _STANDARD if _is_regular(number)
    ]


def _is_regular(number: int) -> bool:
    try:
        # This follows the link to the open file.
        return os.path.isfile(f"/proc/self/fd/{number}")  # noqa: PTH113
    except OSError:
        return False


def is_directory_writable(directory: Path) -> bool:
    """True when a file can be created in the directory; it is removed again. Raises OSError for an
    unexpected error.
    """
    try:
        with probe_file(directory):
            return True
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return False
        raise
