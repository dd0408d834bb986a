"""`agentbox memory`: the memory slot of the box."""

from __future__ import annotations

from pathlib import Path

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.registry import engine_by_name


@click.group(name="memory")
def command() -> None:
    """Manage the memory of the box."""


@command.command()
@click.pass_obj
def reembed(cli: CliContext) -> int:
    """Recompute all vectors with the embedding model of the running box.

    Needed when the memory reports vectors of another model. Resumes after an interruption. Until it
    is complete the memory of every box on that store refuses requests; then each box opens it
    within a minute.
    """
    record = cli.running_record()
    engine = engine_by_name(record.engine)
    if (state := engine.inspect(record).state) != "running":
        raise AgentboxError(
            f"cannot rewrite vectors in the box {record.name}: it is not running (it is {state})",
            "Start it: ./agentbox.sh up",
            exit_code=ExitCode.NOT_RUNNING,
        )
    paths = Paths(Path(record.root or "/"))
    argv = [
        str(paths.python),
        "-I",
        "-m",
        "agentbox.api.reembed",
        *(["--json"] if cli.json else []),
    ]
    return engine.execute(record, argv, terminal=False)
