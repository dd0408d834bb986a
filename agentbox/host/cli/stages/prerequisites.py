"""Stages 2 and 3: the engine and its missing prerequisites."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path

import click

from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import CliContext
from agentbox.host.engines import system_packages
from agentbox.host.engines.docker import daemon, daemon_status
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.engine_choice import EngineChoice, missing_packages, select_engine
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.host.engines.workspace_permissions import (
    WorkspaceAccess,
    is_writable,
    prepare_project,
)
from agentbox.host.uninstall.inventory import Inventory


def choose_engine(cli: CliContext, engine_name: str) -> EngineChoice:
    """Selects the engine for this box."""
    return select_engine(engine_name, cli.find_record())


def install_missing(
    cli: CliContext, choice: EngineChoice, project: Path | None, *, build: bool, yes: bool
) -> str:
    """Installs missing packages after consent; returns a summary. Raises AgentboxError (exit 3)."""
    missing = missing_packages(
        choice.engine, build=build and isinstance(choice.engine, DockerEngine)
    )
    if (
        project is not None
        and shutil.which("setfacl") is None
        and not is_writable(project, workspace_access(choice))
    ):
        missing.append("acl")
    if not missing:
        return "unchanged"
    install_plan = system_packages.plan_install(missing)
    if not yes and not _confirm_install(install_plan):
        raise system_packages.consent_error(missing)
    log = cli.state().directory / "apt.log"
    progress = cli.out.progress()
    progress.stage("install", system_packages.STEPS_PER_PACKAGE * len(install_plan.all_packages))
    system_packages.install(install_plan, log, lambda: progress.advance(1))
    progress.done()
    return (
        f"installed {', '.join(install_plan.requested)} ({len(install_plan.all_packages)} packages)"
    )


def workspace_access(choice: EngineChoice) -> WorkspaceAccess:
    """How a box of this engine accesses a directory of the operator."""
    if isinstance(choice.engine, DockerEngine):
        return WorkspaceAccess()
    return WorkspaceAccess(uid=BOX_UID if os.geteuid() == 0 else os.geteuid(), through_host=True)


def grant_project(cli: CliContext, choice: EngineChoice, project: Path, *, yes: bool) -> None:
    """Grants the box's user write access and records it for `down --project`."""
    note = partial(Inventory.for_this_user().add, "access-list", project)
    if prepare_project(project, workspace_access(choice), yes=yes, note=note):
        cli.state().save_grants([*cli.state().granted_directories(), project])


def start_daemon(choice: EngineChoice) -> str:
    """Starts the engine's daemon if needed; returns a summary."""
    if not isinstance(choice.engine, DockerEngine):
        return "not needed"
    status = daemon_status.query_status()
    if status.state == "answers":
        return "answers"
    if not status.is_startable:
        raise daemon_status.unreachable_error("start a box", status)
    daemon.start(HostPaths.for_this_user().state_root)
    return "started dockerd"


def _confirm_install(install_plan: system_packages.InstallPlan) -> bool:
    if not sys.stdin.isatty():
        return False
    click.echo(
        f"agentbox needs {', '.join(install_plan.requested)}: {len(install_plan.all_packages)} "
        f"Debian packages, {install_plan.size} to download.",
        err=True,
    )
    return click.confirm("Install these with apt?", default=False, err=True)
