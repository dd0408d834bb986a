"""`agentbox task`: tasks of the box, each one a bead."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import ExitCode
from agentbox.core.visible import visible
from agentbox.host.cli.context import Cli
from agentbox.host.cli.terminal import Output

if TYPE_CHECKING:
    from agentbox.client import Task

PAGE = 100


@click.group(name="task")
def command() -> None:
    """Tasks of the box: submit, list, show, stop, logs."""


@command.command(context_settings={"allow_interspersed_args": False})
@click.option("--profile", default="sandboxed", show_default=True, metavar="P", help="Profile of the agent.")
@click.option(
    "--timeout", "timeout_s", type=float, default=600.0, show_default=True, metavar="S", help="Wall clock limit."
)
@click.option("--dedup-key", default=None, metavar="KEY", help="The same key gives the same task.")
@click.option(
    "--direct",
    is_flag=True,
    help="Let it write the workspace itself, its .git too, without a review. Needs scope admin.",
)
@click.option("--wait", is_flag=True, help="Wait until it has ended; exit 1 unless it succeeded.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_obj
def submit(
    cli: Cli, profile: str, timeout_s: float, dedup_key: str | None, direct: bool, wait: bool, argv: tuple[str, ...]
) -> int:  # fmt: skip
    """Queue one command; print the id of its task."""
    spec = {"name": Path(argv[0]).name[:64], "argv": list(argv), "profile": profile}
    spec |= {"workspace": "direct"} if direct else {}
    with cli.client() as client:
        task_id = client.submit_task(spec, timeout_s=timeout_s, dedup_key=dedup_key).task_id
        if not wait:
            cli.out.document({"task_id": task_id})
            cli.out.line(task_id)
            return ExitCode.DONE
        task = _ended(cli, task_id)
    _show(cli, task)
    return ExitCode.DONE if task.state == "succeeded" else ExitCode.BAD


@command.command(name="list")
@click.pass_obj
def list_tasks(cli: Cli) -> None:
    """Every task, oldest first."""
    found: list[Task] = []
    cursor: str | None = None
    with cli.client() as client:
        while True:
            page, cursor = client.tasks(limit=PAGE, cursor=cursor)
            found += page
            if cursor is None:
                break
    cli.out.document([task.to_wire() for task in found])
    for task in found:
        cli.out.line(f"{task.task_id}  {task.state:<10} {task.created_at}  {visible(' '.join(task.argv))[:80]}")


@command.command()
@click.argument("task_id")
@click.pass_obj
def show(cli: Cli, task_id: str) -> None:
    """One task."""
    with cli.client() as client:
        _show(cli, client.task(task_id))


@command.command()
@click.argument("task_id")
@click.pass_obj
def stop(cli: Cli, task_id: str) -> None:
    """Cancel a task; a running one is ended."""
    with cli.client() as client:
        _show(cli, client.cancel_task(task_id))


@command.command()
@click.option("-f", "--follow", is_flag=True, help="Go on until the task has ended.")
@click.argument("task_id")
@click.pass_obj
def logs(cli: Cli, follow: bool, task_id: str) -> None:
    """Output of a task, as far as the box has kept it."""
    from agentbox.client import Task
    from agentbox.host.cli.commands.agents.run import DROPPED

    with cli.client() as client, closing(Output()) as output:
        for item in client.task_logs(task_id, follow=follow):
            if not isinstance(item, Task) and item.kind == "state" and b'"truncated"' in item.data:
                cli.out.note(f"agentbox: {DROPPED}")
            elif not isinstance(item, Task):
                output.write(item.kind, item.data)


def _ended(cli: Cli, task_id: str) -> Task:
    from agentbox.client import Task

    with cli.client() as client:
        return next(item for item in client.task_logs(task_id) if isinstance(item, Task))


def _show(cli: Cli, task: Task) -> None:
    cli.out.document(task.to_wire())
    for name, value in task.to_wire().items():
        if value not in (None, {}):
            cli.out.line(f"{name:<11} {visible(' '.join(value) if isinstance(value, (list, tuple)) else str(value))}")
