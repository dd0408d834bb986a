"""The state folder: it holds the admin token and the secrets, so it is the caller's alone."""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.host.doctor.check_result import CheckResult, Fix
from agentbox.host.doctor.host import Host
from agentbox.host.engines.sudo_user import chown_tree, invoking_user

NAME = "state"
TITLE = "the box's folder on this host"
_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_PRIVATE_FILES = (
    "token",
)  # the rest relies on the folder; secrets there are 0444 for the box's own user


def run_check(host: Host) -> Iterator[CheckResult]:
    directory = host.state.directory
    if not directory.exists():
        yield CheckResult(
            check=NAME,
            subject="folder",
            state="good",
            message=f"{directory} is not there yet; `up` makes it",
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
        message=f"{path} is {mode:04o}: others on this host can look inside",
        advice=f"chmod {max_mode:04o} {path}",
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
            check=NAME, subject="owner", state="good", message=f"uid {actual}, who called"
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
        message=f"{directory} belongs to uid {actual}, not to {expected} who called",
        advice=f"Run agentbox as uid {actual}, or give the folder to uid {expected}.",
        fix=fix,
    )


def _change_owner(directory: Path) -> str:
    with wrap_os_errors(f"give {directory} away"):
        chown_tree(directory)
    return f"{directory} belongs to the caller"
