"""The state folder: it holds the admin token and the secrets, so it is the caller's alone."""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agentbox.core.files.atomic_text import told
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Repair, Row
from agentbox.host.engines.sudo_user import caller, hand_over

NAME = "state"
TITLE = "the box's folder on this host"
_PRIVATE = 0o700
_SECRET = 0o600
_ALONE = ("token",)  # the rest relies on the folder; secrets there are 0444 for the box's own user


def look(host: Host) -> Iterator[Row]:
    folder = host.state.folder
    if not folder.exists():
        yield Row(check=NAME, subject="folder", state="good", said=f"{folder} is not there yet; `up` makes it")
        return
    yield _mode("folder", folder, _PRIVATE)
    yield from (_mode(name, folder / name, _SECRET) for name in _ALONE if (folder / name).exists())
    yield _owner(folder)


def _mode(subject: str, path: Path, most: int) -> Row:
    mode = stat.S_IMODE(path.lstat().st_mode)
    if not mode & ~most:
        return Row(check=NAME, subject=subject, state="good", said=f"{path} is {mode:04o}")
    return Row(
        check=NAME, subject=subject, state="bad", said=f"{path} is {mode:04o}: others on this host can look inside",
        advice=f"chmod {most:04o} {path}",
        repair=Repair(f"Set {path} to {most:04o}?", partial(_set_mode, path, most)),
    )  # fmt: skip


def _set_mode(path: Path, mode: int) -> str:
    with told(f"set the mode of {path}"):
        path.chmod(mode)
    return f"{path} is {mode:04o}"


def _owner(folder: Path) -> Row:
    wanted = (caller() or (os.geteuid(), os.getegid()))[0]
    found = folder.stat().st_uid
    if found == wanted:
        return Row(check=NAME, subject="owner", state="good", said=f"uid {found}, who called")
    repair = Repair(f"Give {folder} to uid {wanted}?", partial(_give, folder)) if caller() else None
    return Row(check=NAME, subject="owner", state="bad", said=f"{folder} belongs to uid {found}, not to {wanted} who called",
               advice=f"Run agentbox as uid {found}, or give the folder to uid {wanted}.", repair=repair)  # fmt: skip


def _give(folder: Path) -> str:
    with told(f"give {folder} away"):
        hand_over(folder)
    return f"{folder} belongs to the caller"
