"""A directory of the operator as the workspace: uid 1000 must be able to write it, through an ACL
with the operator's consent.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.command import run
from agentbox.host.engines.process.privilege_drop import BOX_UID, become_box_user


def project_directory(directory: Path) -> Path:
    """Return the directory, resolved. Raises AgentboxError: exit 2 if it is not a directory, exit 3
    if it is read-only.
    """
    project = directory.resolve()
    if not project.is_dir():
        raise AgentboxError(
            f"cannot use {directory} as the workspace: it is not a directory",
            "Create it first.",
            exit_code=ExitCode.USAGE,
        )
    if os.statvfs(project).f_flag & os.ST_RDONLY:
        raise AgentboxError(
            f"cannot use {project} as the workspace: its file system is read-only",
            "Mount it writable, or copy the directory to a writable location.",
            exit_code=ExitCode.PREREQUISITE,
        )
    return project


@dataclass(frozen=True)
class WorkspaceAccess:
    """How the box's user reaches the directory: `through_host` by its path, else by a mount that
    bypasses its parents.
    """

    uid: int = BOX_UID
    through_host: bool = False


def prepare_project(
    project: Path, access: WorkspaceAccess, *, yes: bool, note: Callable[[], None]
) -> bool:
    """Makes the directory writable for the box's user. Returns True if an access list was set;
    `note` is called with consent, before that.

    Raises AgentboxError (exit 3) without consent, or if an access list does not help.
    """
    if is_writable(project, access):
        return False
    if (
        access.uid not in (BOX_UID, 0) and access.through_host
    ):  # the caller's own rights, which an access list does not change
        raise AgentboxError(
            f"cannot use {project} as the workspace: you cannot write it",
            "Use a directory of your own.",
            exit_code=ExitCode.PREREQUISITE,
        )
    acl = _acl_entries(project)
    command = shlex.join(["setfacl", "-R", *acl, str(project)])
    if not (yes or _confirm(command)):
        raise AgentboxError(
            f"cannot use {project} as the workspace: uid {access.uid} (the box's user) cannot "
            "write it",
            f"Run: {command}   (or give --yes; `down --project` undoes it)",
            exit_code=ExitCode.PREREQUISITE,
        )
    note()
    _change_acl(project, acl)
    if not is_writable(project, access):
        revoke_access(project)
        raise AgentboxError(
            f"cannot use {project} as the workspace: uid {access.uid} cannot reach it even with "
            "an access list",
            "A parent directory is closed to others: move the project, or open that directory.",
            exit_code=ExitCode.PREREQUISITE,
        )
    return True


def is_writable(project: Path, access: WorkspaceAccess) -> bool:
    """True if that user may enter and write the directory, checked by the kernel as that user.

    A caller who can become neither root nor that user reads the mode bits and the access list
    instead.
    """
    if os.geteuid() not in (0, access.uid):
        return _permissions_allow(project, access.uid)
    probe = [
        "/bin/sh",
        "-c",
        'test -r "$0" && test -w "$0" && test -x "$0"',
        str(project) if access.through_host else ".",
    ]
    cwd = "/" if access.through_host else project
    return subprocess.run(probe, cwd=cwd, preexec_fn=become_box_user, check=False).returncode == 0


def revoke_access(project: Path) -> None:
    """Reverts `prepare_project`. A missing directory is ignored."""
    if project.is_dir():
        _change_acl(
            project,
            [
                argument.rpartition(":")[0] if ":" in argument else "-x"
                for argument in _acl_entries(project)
            ],
        )


def _acl_entries(project: Path) -> list[str]:
    """For the box's user, for existing and new files; and for the owner, for files of the box's
    user.
    """
    owner = project.stat().st_uid
    entries = [
        f"u:{BOX_UID}:rwX",
        f"d:u:{BOX_UID}:rwX",
        *([f"d:u:{owner}:rwX"] if owner != BOX_UID else []),
    ]
    return [argument for entry in entries for argument in ("-m", entry)]


def _permissions_allow(project: Path, uid: int) -> bool:
    status = project.stat()
    if status.st_uid == uid:
        return status.st_mode & stat.S_IRWXU == stat.S_IRWXU
    if status.st_mode & stat.S_IRWXO == stat.S_IRWXO:
        return True
    if shutil.which("getfacl") is None:
        return False
    output = run(
        ["getfacl", "--numeric", "--absolute-names", "--omit-header", str(project)],
        doing=f"read the access list of {project}",
    )
    return any(
        line.startswith(f"user:{uid}:rwx") and "#effective" not in line
        for line in output.splitlines()
    )


def _change_acl(project: Path, change: list[str]) -> None:
    if shutil.which("setfacl") is None:
        raise AgentboxError(
            "cannot change the access list of the workspace: setfacl is not installed",
            "Run: apt-get install acl, then the command again.",
            exit_code=ExitCode.PREREQUISITE,
        )
    run(
        ["setfacl", "-R", *change, str(project)],
        doing=f"change the access list of {project}",
        exit_code=ExitCode.PREREQUISITE,
    )


def _confirm(command: str) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(
        f"The box's user (uid {BOX_UID}) needs to write there. Run `{command}`?",
        default=False,
        err=True,
    )
