"""A folder of the operator's as the workspace: uid 1000 must be able to write it, by an ACL the operator consents to."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.command import run
from agentbox.host.engines.process.identity import BOX_UID, become_box_user


def project_directory(directory: Path) -> Path:
    """The folder, resolved. Raises AgentboxError: exit 2 when it is none, exit 3 when nobody can write there."""
    project = directory.resolve()
    if not project.is_dir():
        raise AgentboxError(
            f"cannot use {directory} as the workspace: it is no folder",
            "Create it first.",
            exit_code=ExitCode.USAGE,
        )
    if os.statvfs(project).f_flag & os.ST_RDONLY:
        raise AgentboxError(
            f"cannot use {project} as the workspace: its file system is read-only",
            "Mount it writable, or copy the folder to a place that is.",
            exit_code=ExitCode.PREREQUISITE,
        )
    return project


@dataclass(frozen=True)
class WorkspaceAccess:
    """How the box's user gets at the folder: `through_host` by its path, else by a mount, past the folders above it."""

    uid: int = BOX_UID
    through_host: bool = False


def prepare_project(project: Path, access: WorkspaceAccess, *, yes: bool) -> bool:
    """Makes sure that the box's user can write the folder. True when an access list was set for that.

    Raises AgentboxError (exit 3) when none was consented to, or when one does not help.
    """
    if is_writable(project, access):
        return False
    if (
        access.uid not in (BOX_UID, 0) and access.through_host
    ):  # the caller's own rights: no access list mends those
        raise AgentboxError(
            f"cannot use {project} as the workspace: you cannot write it",
            "Take a folder of your own.",
            exit_code=ExitCode.PREREQUISITE,
        )
    acl = _acl_entries(project)
    command = shlex.join(["setfacl", "-R", *acl, str(project)])
    if not (yes or _confirm(command)):
        raise AgentboxError(
            f"cannot use {project} as the workspace: uid {access.uid} (the box's user) cannot write it",
            f"Run: {command}   (or give --yes; `down --project` undoes it)",
            exit_code=ExitCode.PREREQUISITE,
        )
    _change_acl(project, acl)
    if not is_writable(project, access):
        revoke_access(project)
        raise AgentboxError(
            f"cannot use {project} as the workspace: uid {access.uid} cannot reach it even with an access list",
            "A folder above it is closed to others: move the project, or open that folder.",
            exit_code=ExitCode.PREREQUISITE,
        )
    return True


def is_writable(project: Path, access: WorkspaceAccess) -> bool:
    """True when that user may enter and write the folder, asked of the kernel as that user.

    Who can become neither root nor that user reads the folder's bits and its access list instead.
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
    """Undoes what `prepare_project` set. A folder that is gone needs nothing."""
    if project.is_dir():
        _change_acl(
            project,
            [
                argument.rpartition(":")[0] if ":" in argument else "-x"
                for argument in _acl_entries(project)
            ],
        )


def _acl_entries(project: Path) -> list[str]:
    """For the box's user now and later; and for the owner what the box's user will make there."""
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
