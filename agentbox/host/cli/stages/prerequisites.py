"""Stage 2 and 3: the engine, and what this machine lacks for it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import Cli
from agentbox.host.engines import packages
from agentbox.host.engines.choose import Choice, choose, missing_packages
from agentbox.host.engines.docker import daemon, reach
from agentbox.host.engines.docker.docker import Docker
from agentbox.host.engines.process.identity import BOX_UID
from agentbox.host.engines.project import Reach, prepare_project, writable


def choose_engine(cli: Cli, asked: str) -> Choice:
    """The engine for this box."""
    return choose(asked, cli.known_record())


def install_missing(cli: Cli, choice: Choice, project: Path | None, *, build: bool, yes: bool) -> str:
    """Installs what is missing, with consent. Returns what to say. Raises AgentboxError (exit 3) without consent."""
    wanted = missing_packages(choice.engine, build=build and isinstance(choice.engine, Docker))
    if project is not None and shutil.which("setfacl") is None and not writable(project, reach_of(choice)):
        wanted.append("acl")
    if not wanted:
        return "unchanged"
    agreed = packages.offer(wanted)
    if not yes and not _asked(agreed):
        raise packages.refusal(wanted)
    log = cli.state().folder / "apt.log"
    progress = cli.out.progress()
    progress.stage("install", packages.STEPS * len(agreed.all))
    packages.install(agreed, log, lambda: progress.advance(1))
    progress.done()
    return f"installed {', '.join(agreed.wanted)} ({len(agreed.all)} packages)"


def reach_of(choice: Choice) -> Reach:
    """How this engine's box gets at a folder of the operator's."""
    if isinstance(choice.engine, Docker):
        return Reach()
    return Reach(uid=BOX_UID if os.geteuid() == 0 else os.geteuid(), through_host=True)


def give_project(cli: Cli, choice: Choice, project: Path, *, yes: bool) -> None:
    """Lets the box's user write the folder, and remembers it for `down --project`."""
    if prepare_project(project, reach_of(choice), yes=yes):
        cli.state().remember_grants([*cli.state().granted(), project])


def start_daemon(choice: Choice) -> str:
    """Makes sure that the engine answers. Returns what to say."""
    if not isinstance(choice.engine, Docker):
        return "not needed"
    found = reach.reach()
    if found.state == "answers":
        return "answers"
    if not found.ours_to_start:
        raise reach.unreachable("start a box", found)
    daemon.start(HostPaths.of_this_user().state_root)
    return "started dockerd"


def _asked(agreed: packages.Offer) -> bool:
    if not sys.stdin.isatty():
        return False
    click.echo(
        f"agentbox needs {', '.join(agreed.wanted)}: {len(agreed.all)} Debian packages, {agreed.size} to download.",
        err=True,
    )
    return click.confirm("Install these with apt?", default=False, err=True)
