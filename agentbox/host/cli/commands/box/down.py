"""`agentbox down`: drains and stops the box and removes its container, optionally its volumes."""

from __future__ import annotations

import sys

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.docker import daemon
from agentbox.host.engines.engine_choice import Engine, find_stored
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.shutdown_outcome import last_shutdown
from agentbox.host.engines.state import BoxRecord
from agentbox.host.engines.workspace_permissions import revoke_access
from agentbox.host.generations.store import GenerationStore
from agentbox.host.generations.trial_steps import end_trial


@click.command(name="down")
@click.option(
    "--volumes",
    is_flag=True,
    help="Also remove the volumes: state, branches, workspace, backups (asks first).",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--engine", "stop_engine", is_flag=True, help="Also stop the dockerd that `up` started."
)
@click.option(
    "--project",
    "undo_project",
    is_flag=True,
    help="Also remove the access list that `up --project` set.",
)
@click.pass_obj
def command(
    cli: CliContext, volumes: bool, yes: bool, stop_engine: bool, undo_project: bool
) -> None:
    """Stop the box and remove its container.

    Agents are stopped, their writes flushed, and the last line reports whether the shutdown was
    clean and which tasks it ended. Volumes are kept unless --volumes. A stopped box is not an
    error.
    """
    if volumes and not yes and not _confirm_removal(cli):
        raise AgentboxError(
            "cannot remove the volumes: not confirmed", "Give --yes.", exit_code=ExitCode.USAGE
        )
    with cli.state().exclusive_lock():
        record = cli.find_record()
        shutdown = (
            "not running"
            if record is None
            else _stop_and_remove(cli, engine_by_name(record.engine), record)
        )
        end_trial(GenerationStore(cli.state()))
        removed = _remove_volumes(cli) if volumes else []
        if volumes:
            GenerationStore(cli.state()).forget()
        if undo_project:
            _revoke_project_access(cli)
        cli.state().clear()
        stopped = stop_engine and daemon.stop(HostPaths.for_this_user().state_root)
    cli.out.document({"shutdown": shutdown, "volumes_removed": removed, "daemon_stopped": stopped})
    volumes_note = "; volumes removed" if removed else ""
    cli.out.line(f"down ({shutdown}){volumes_note}{'; dockerd stopped' if stopped else ''}")


def _revoke_project_access(cli: CliContext) -> None:
    state = cli.state()
    with cli.out.stage("project") as stage:
        directories = state.granted_directories()
        for directory in directories:
            revoke_access(directory)
        state.save_grants([])
        stage.result = f"access lists removed: {', '.join(map(str, directories)) or 'none'}"


def _remove_volumes(cli: CliContext) -> list[str]:
    """Removes the volumes of the box under any engine; returns the names of those engines."""
    name, state = cli.load_manifest().usable.meta.name, cli.state()
    with cli.out.stage("volumes") as stage:
        records = find_stored(name, state)
        for record in records:
            engine_by_name(record.engine).remove(record, volumes=True)
        stage.result = "removed" if records else "none found"
    return [record.engine for record in records]


def _stop_and_remove(cli: CliContext, engine: Engine, record: BoxRecord) -> str:
    seconds = int(cli.timeout or _stop_seconds(cli))
    with cli.out.stage("stop") as stage:
        state = engine.inspect(record).state
        if state == "running":
            engine.stop(record, seconds)
        shutdown = (
            "was removed before" if state == "absent" else last_shutdown(engine, record).summary
        )
        stage.result = shutdown
    with cli.out.stage("remove") as stage:
        engine.remove(record, volumes=False)
    return shutdown


def _stop_seconds(cli: CliContext) -> int:
    model = cli.load_manifest().effective
    assert model is not None
    return model.resources.stop_seconds


def _confirm_removal(cli: CliContext) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(
        f"Remove all data of {cli.state().directory.name}?", default=False, err=True
    )
