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
    """The memory of the box: what it can find again."""


@command.command()
@click.pass_obj
def reembed(cli: CliContext) -> int:
    """Rewrite every vector by the embedding model of the running box.

    For a memory that says that its vectors are of another model. It may be interrupted and run again: it goes on
    where it stood. Until it is done the memory of every box on that store refuses; then each opens it by itself within a
    minute.
    """
    record = cli.running_record()
    engine = engine_by_name(record.engine)
    if (state := engine.inspect(record).state) != "running":
        raise AgentboxError(
            f"cannot rewrite vectors in the box {record.name}: it does not run (it is {state})",
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
