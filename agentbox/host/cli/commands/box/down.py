"""`agentbox down`: drain, stop, remove the container; state stays unless it is asked to go."""

from __future__ import annotations

import sys

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import Cli
from agentbox.host.engines.choose import Engine, leftovers
from agentbox.host.engines.docker import daemon
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.project import take_back
from agentbox.host.engines.shutdown import last_shutdown
from agentbox.host.engines.state import BoxRecord


@click.command(name="down")
@click.option(
    "--volumes", is_flag=True, help="Remove what the box stored too: state, branches, workspace (asks first)."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--engine", "stop_engine", is_flag=True, help="Also stop the dockerd that `up` started.")
@click.option("--project", "undo_project", is_flag=True, help="Also undo the access list that `up --project` set.")
@click.pass_obj
def command(cli: Cli, volumes: bool, yes: bool, stop_engine: bool, undo_project: bool) -> None:
    """Stop the box and remove its container.

    Agents are stopped, what they wrote is flushed, and the last line says whether that shutdown was clean and which tasks
    ended with it. What the box stored stays for the next `up`, unless --volumes. Nothing to stop is no error.
    """
    if volumes and not yes and not _sure(cli):
        raise AgentboxError("cannot remove the volumes: not confirmed", "Give --yes.", exit_code=ExitCode.USAGE)
    with cli.state().exclusively():
        record = cli.known_record()
        mark = "not running" if record is None else _end(cli, engine_named(record.engine), record)
        removed = _wipe(cli) if volumes else []
        if undo_project:
            _undo_grants(cli)
        cli.state().forget()
        stopped = stop_engine and daemon.stop(HostPaths.of_this_user().state_root)
    cli.out.document({"shutdown": mark, "volumes_removed": removed, "daemon_stopped": stopped})
    cli.out.line(f"down ({mark}){'; volumes removed' if removed else ''}{'; dockerd stopped' if stopped else ''}")


def _undo_grants(cli: Cli) -> None:
    state = cli.state()
    with cli.out.stage("project") as stage:
        folders = state.granted()
        for folder in folders:
            take_back(folder)
        state.remember_grants([])
        stage.said = f"access lists taken back: {', '.join(map(str, folders)) or 'none'}"


def _wipe(cli: Cli) -> list[str]:
    """Removes what the box has stored under any engine; the names of those engines."""
    name, state = cli.load_manifest().usable.meta.name, cli.state()
    with cli.out.stage("volumes") as stage:
        found = leftovers(name, state)
        for record in found:
            engine_named(record.engine).remove(record, volumes=True)
        stage.said = "removed" if found else "there were none"
    return [record.engine for record in found]


def _end(cli: Cli, engine: Engine, record: BoxRecord) -> str:
    seconds = int(cli.timeout or _stop_seconds(cli))
    with cli.out.stage("stop") as stage:
        found = engine.inspect(record).state
        if found == "running":
            engine.stop(record, seconds)
        mark = "was removed before" if found == "absent" else last_shutdown(engine, record).mark
        stage.said = mark
    with cli.out.stage("remove") as stage:
        engine.remove(record, volumes=False)
    return mark


def _stop_seconds(cli: Cli) -> int:
    model = cli.load_manifest().effective
    assert model is not None
    return model.resources.stop_seconds


def _sure(cli: Cli) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"Remove everything that {cli.state().folder.name} stored?", default=False, err=True)
