"""`agentbox down`: drain, stop, remove the container; state stays unless it is asked to go."""

from __future__ import annotations

import sys

import click

from agentbox.cli.context import Cli
from agentbox.engine import daemon
from agentbox.engine.choose import Engine, engine_named
from agentbox.engine.project import take_back
from agentbox.engine.shutdown import shutdown_mark
from agentbox.engine.state import BoxRecord
from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import HostPaths


@click.command(name="down")
@click.option("--volumes", is_flag=True, help="Remove the box's state, branches and workspace volumes too (asks).")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--engine", "stop_engine", is_flag=True, help="Also stop the dockerd that `up` started.")
@click.option("--project", "undo_project", is_flag=True, help="Also undo the access list that `up --project` set.")
@click.pass_obj
def command(cli: Cli, volumes: bool, yes: bool, stop_engine: bool, undo_project: bool) -> None:
    """Stop the box. What it stored stays, unless --volumes."""
    if volumes and not yes and not _sure(cli):
        raise AgentboxError("cannot remove the volumes: not confirmed", "Give --yes.", exit_code=ExitCode.USAGE)
    state = cli.state()
    with state.exclusively():
        record = state.record()
        mark = "not running" if record is None else _stop(cli, engine_named(record.engine), record, volumes=volumes)
        if record is not None and record.project and undo_project:
            from pathlib import Path

            take_back(Path(record.project))
        state.forget()
        stopped = stop_engine and daemon.stop(HostPaths.of_this_user().state_root)
    cli.out.document({"shutdown": mark, "daemon_stopped": stopped})
    cli.out.line(f"down ({mark}){'; dockerd stopped' if stopped else ''}")


def _stop(cli: Cli, engine: Engine, record: BoxRecord, *, volumes: bool) -> str:
    seconds = int(cli.timeout or _stop_seconds(cli))
    with cli.out.stage("stop") as stage:
        engine.stop(record, seconds)
        mark = shutdown_mark(engine, record)
        stage.said = mark
    with cli.out.stage("remove") as stage:
        engine.remove(record, volumes=volumes)
        stage.said = "container and volumes" if volumes else "container"
    return mark


def _stop_seconds(cli: Cli) -> int:
    model = cli.load_manifest().effective
    assert model is not None
    return model.resources.stop_seconds


def _sure(cli: Cli) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"Remove everything that {cli.state().folder.name} stored?", default=False, err=True)
