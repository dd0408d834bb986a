"""The state directory: contains the admin token and secrets, so it must be private."""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult, Fix
from agentbox.host.engines.sudo_user import chown_tree, invoking_user

NAME = "state"
TITLE = "the state directory of the box"
_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_PRIVATE_FILES = (
    "token",
)  # other files rely on the directory; secrets are 0444 for the box's user


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    directory = host.state.directory
    if not directory.exists():
        yield CheckResult(
            check=NAME,
            subject="folder",
            state="good",
            message=f"{directory} does not exist yet; `up` creates it",
        )
        return
    yield _check_mode("folder", directory, _DIRECTORY_MODE)
    yield from (
        _check_mode(name, directory / name, _FILE_MODE)
        for name in _PRIVATE_FILES
        if (directory / name).exists()
    )
    yield _check_owner(directory)


def _check_mode(subject: str, path: Path, max_mode: int) -> CheckResult:
    mode = stat.S_IMODE(path.lstat().st_mode)
    if not mode & ~max_mode:
        return CheckResult(
            check=NAME, subject=subject, state="good", message=f"{path} is {mode:04o}"
        )
    return CheckResult(
        check=NAME,
        subject=subject,
        state="bad",
        message=f"{path} is {mode:04o}: readable by other users",
        advice=f"Run chmod {max_mode:04o} {path}",
        fix=Fix(f"Set {path} to {max_mode:04o}?", partial(_set_mode, path, max_mode)),
    )


def _set_mode(path: Path, mode: int) -> str:
    with wrap_os_errors(f"set the mode of {path}"):
        path.chmod(mode)
    return f"{path} is {mode:04o}"


def _check_owner(directory: Path) -> CheckResult:
    expected = (invoking_user() or (os.geteuid(), os.getegid()))[0]
    actual = directory.stat().st_uid
    if actual == expected:
        return CheckResult(
            check=NAME, subject="owner", state="good", message=f"owned by uid {actual}, the caller"
        )
    fix = (
        Fix(f"Give {directory} to uid {expected}?", partial(_change_owner, directory))
        if invoking_user()
        else None
    )
    return CheckResult(
        check=NAME,
        subject="owner",
        state="bad",
        message=f"{directory} is owned by uid {actual}, not by the caller {expected}",
        advice=f"Run agentbox as uid {actual}, or chown the directory to uid {expected}.",
        fix=fix,
    )


def _change_owner(directory: Path) -> str:
    with wrap_os_errors(f"give {directory} away"):
        chown_tree(directory)
    return f"{directory} belongs to the caller"
