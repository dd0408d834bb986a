"""`agentbox task`: tasks of the box, each stored as a bead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agentbox.core.errors import ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.agent_output import AgentOutput
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.id_argument import id_argument
from agentbox.host.cli.usage_text import models_line, run_line

if TYPE_CHECKING:
    from agentbox.contracts.task_records import Task

PAGE_SIZE = 100


@click.group(name="task")
def command() -> None:
    """Manage tasks of the box: submit, list, show, stop, logs."""


@command.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--profile", default="sandboxed", show_default=True, metavar="P", help="Profile of the agent."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    default=600.0,
    show_default=True,
    metavar="S",
    help="Wall clock limit.",
)
@click.option(
    "--dedup-key", default=None, metavar="KEY", help="Return the existing task with the same key."
)
@click.option(
    "--direct",
    is_flag=True,
    help="Write to the workspace itself, including .git, without a review. Needs scope admin.",
)
@click.option("--wait", is_flag=True, help="Wait until it has ended; exit 1 unless it succeeded.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_obj
def submit(
    cli: CliContext,
    profile: str,
    timeout_s: float,
    dedup_key: str | None,
    direct: bool,
    wait: bool,
    argv: tuple[str, ...],
) -> int:
    """Queue one command; print the id of its task."""
    spec = {"name": Path(argv[0]).name[:64], "argv": list(argv), "profile": profile}
    spec |= {"workspace": "direct"} if direct else {}
    with cli.client() as client:
        task_id = client.submit_task(spec, timeout_s=timeout_s, dedup_key=dedup_key).task_id
        if not wait:
            cli.out.document({"task_id": task_id})
            cli.out.line(task_id)
            return ExitCode.DONE
        task = _wait_until_ended(cli, task_id)
    _print_task(cli, task)
    return ExitCode.DONE if task.state == "succeeded" else ExitCode.BAD


@command.command(name="list")
@click.pass_obj
def list_tasks(cli: CliContext) -> None:
    """List all tasks, oldest first."""
    from agentbox.client import every

    with cli.client() as client:
        tasks: list[Task] = list(every(client.list_tasks, limit=PAGE_SIZE))
    cli.out.document([task.to_wire() for task in tasks])
    for task in tasks:
        cli.out.line(
            f"{task.task_id}  {task.state:<10} {task.created_at}  "
            f"{escape_invisible(' '.join(task.argv))[:80]}"
        )


@command.command()
@id_argument("task", "task_id")
@click.pass_obj
def show(cli: CliContext, task_id: str) -> None:
    """Show a task."""
    with cli.client() as client:
        _print_task(cli, client.get_task(task_id))


@command.command()
@id_argument("task", "task_id")
@click.pass_obj
def stop(cli: CliContext, task_id: str) -> None:
    """Cancel a task; a running one is stopped."""
    with cli.client() as client:
        _print_task(cli, client.cancel_task(task_id))


@command.command()
@click.option("-f", "--follow", is_flag=True, help="Follow until the task has ended.")
@id_argument("task", "task_id")
@click.pass_obj
def logs(cli: CliContext, follow: bool, task_id: str) -> None:
    """Show the output of a task that the box has stored."""
    from agentbox.contracts.task_records import Task
    from agentbox.host.cli.commands.agents.task_output import OUTPUT_DROPPED

    with cli.client() as client, closing(AgentOutput()) as output:
        for item in client.task_logs(task_id, follow=follow):
            if not isinstance(item, Task) and item.kind == "state" and b'"truncated"' in item.data:
                cli.out.note(f"agentbox: {OUTPUT_DROPPED}")
            elif not isinstance(item, Task):
                output.write(item.kind, item.data)


def _wait_until_ended(cli: CliContext, task_id: str) -> Task:
    from agentbox.contracts.task_records import Task

    with cli.client() as client:
        return next(item for item in client.task_logs(task_id) if isinstance(item, Task))


_USAGE: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "usage": run_line,
    "models": models_line,
}


def _print_task(cli: CliContext, task: Task) -> None:
    cli.out.document(task.to_wire())
    for name, value in task.to_wire().items():
        if value not in (None, {}):
            text = " ".join(value) if isinstance(value, (list, tuple)) else str(value)
            if name in _USAGE:
                text = _USAGE[name](value)
            cli.out.line(f"{name:<11} {escape_invisible(text)}")
