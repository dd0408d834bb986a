"""A folder of the operator's as the workspace: uid 1000 must be able to write it, by an ACL the operator consents to."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from agentbox.engine.command import run
from agentbox.engine.identity import BOX_UID, become_box_user
from agentbox.errors import AgentboxError, ExitCode


def project_folder(folder: Path) -> Path:
    """The folder, resolved. Raises AgentboxError: exit 2 when it is none, exit 3 when nobody can write there."""
    project = folder.resolve()
    if not project.is_dir():
        raise AgentboxError(
            f"cannot use {folder} as the workspace: it is no folder", "Create it first.", exit_code=ExitCode.USAGE
        )
    if os.statvfs(project).f_flag & os.ST_RDONLY:
        raise AgentboxError(
            f"cannot use {project} as the workspace: its file system is read-only",
            "Mount it writable, or copy the folder to a place that is.",
            exit_code=ExitCode.PREREQUISITE,
        )
    return project


def prepare_project(project: Path, *, yes: bool) -> None:
    """Makes sure that uid 1000 can write the folder. Raises AgentboxError (exit 3) when no ACL was consented to, or when
    one does not help."""
    if writable(project):
        return
    command = f"setfacl -R -m u:{BOX_UID}:rwX -m d:u:{BOX_UID}:rwX {shlex.quote(str(project))}"
    if not (yes or _asked(command)):
        raise AgentboxError(
            f"cannot use {project} as the workspace: uid {BOX_UID} (the box's user) cannot write it",
            f"Run: {command}   (or give --yes; `down --project` undoes it)",
            exit_code=ExitCode.PREREQUISITE,
        )
    give(project)
    if not writable(project):
        raise AgentboxError(
            f"cannot use {project} as the workspace: uid {BOX_UID} cannot reach it even with an access list",
            "A folder above it is closed to others: move the project, or open that folder.",
            exit_code=ExitCode.PREREQUISITE,
        )


def writable(project: Path) -> bool:
    """True when uid 1000 may enter and write the folder, asked of the kernel as that uid."""
    probe = ["/bin/sh", "-c", 'test -r "$0" && test -w "$0" && test -x "$0"', str(project)]
    return subprocess.run(probe, cwd="/", preexec_fn=become_box_user, check=False).returncode == 0


def give(project: Path) -> None:
    """Gives uid 1000 an ACL on the folder and all below, now and for what is made later."""
    _acl(project, ["-R", "-m", f"u:{BOX_UID}:rwX", "-m", f"d:u:{BOX_UID}:rwX"])


def take_back(project: Path) -> None:
    """Undoes `give`."""
    _acl(project, ["-R", "-x", f"u:{BOX_UID}", "-x", f"d:u:{BOX_UID}"])


def _acl(project: Path, change: list[str]) -> None:
    if shutil.which("setfacl") is None:
        raise AgentboxError(
            "cannot change the access list of the workspace: setfacl is not installed",
            "Run: apt-get install acl, then the command again.",
            exit_code=ExitCode.PREREQUISITE,
        )
    run(
        ["setfacl", *change, str(project)],
        doing=f"change the access list of {project}",
        exit_code=ExitCode.PREREQUISITE,
    )


def _asked(command: str) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(
        f"The box's user (uid {BOX_UID}) needs to write there. Run `{command}`?", default=False, err=True
    )
