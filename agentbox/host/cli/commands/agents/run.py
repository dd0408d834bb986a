"""`agentbox run`: runs one command in the box as a task and streams its output."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.ids import uuid7
from agentbox.host.cli.commands.agents.task_output import (
    BufferSink,
    LogReader,
    Sink,
    TerminalSink,
)
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize
from agentbox.host.cli.stdio import discard_unwritten

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.task_records import Task

CONFINED_NOTE = (
    "confined by the kernel to its profile, network through the gateway; limits: docs/security.md"
)
DECLARED_NOTE = (
    "confined by the kernel as the manifest defines this agent; limits: docs/security.md"
)
OPEN_NOTE = (
    "confined by the kernel to its files and processes, its network is open; docs/security.md"
)
EXIT_AGENTBOX_FAILED = 125
EXIT_TIMED_OUT = 124
EXIT_SIGNAL_BASE = 128
_RETRY_TIMEOUT_SECONDS = 15.0  # a killed API restarts within two
_RETRY_DELAY_SECONDS = 0.2
_OPERATOR = "urn:agentbox:operator"
_NO_STATE_STATUSES = (403, 404)  # not permitted, or created by this run


@click.command(
    name="run",
    context_settings={"allow_interspersed_args": False},
    epilog="Exit code: the command's own; 128 + n if signal n ended it, 124 at the time limit, 125 "
    "if agentbox failed or "
    "output was lost.",
)
@click.option(
    "--agent",
    default="",
    metavar="NAME",
    help="Run this agent of the manifest, with its own command.",
)
@click.option(
    "--name",
    "state",
    default="",
    metavar="N",
    help="Share the state of this name: memory and pods that persist.",
)
@click.option(
    "--profile",
    default="",
    metavar="P",
    help="Profile of the agent. [default: sandboxed, or that of NAME]",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="S",
    help="Stop it after S seconds.",
)
@click.option(
    "--cwd", default="", metavar="DIR", help="Directory in the box. [default: /workspace]"
)
@click.option(
    "--env",
    "-e",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an environment variable; may be repeated.",
)
@click.option(
    "--input",
    "input_file",
    type=click.File("rb"),
    help="Feed this file (- for stdin) to its standard input.",
)
@click.option(
    "--direct",
    is_flag=True,
    help="Write to the workspace itself, including .git, without a review. Needs scope admin.",
)
@click.option("--no-stream", is_flag=True, help="Print the output when the command has ended.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD...")
@click.pass_obj
def command(
    cli: CliContext,
    agent: str,
    state: str,
    profile: str,
    timeout_s: float,
    cwd: str,
    env: tuple[str, ...],
    input_file: IO[bytes] | None,
    direct: bool,
    no_stream: bool,
    argv: tuple[str, ...],
) -> int:
    """Run one command in the box, or an agent of the manifest by its name, and return its exit
    code.

    Its output streams to this terminal. Ctrl-C cancels it. A bead in the box records it. It works
    in a copy of the workspace; its changes wait for `agentbox review`.
    """
    if bool(argv) == bool(agent):
        raise click.UsageError("Give either CMD... or --agent NAME.")
    name, profile = agent or Path(argv[0]).name[:64], profile or ("" if agent else "sandboxed")
    spec = {
        "name": name,
        "argv": list(argv),
        "profile": profile,
        "cwd": cwd,
        "env": parse_env(env),
    }
    spec |= {"agent": agent} if agent else {}
    spec |= {"state": state} if state else {}
    spec |= {"workspace": "direct"} if direct else {}
    confined = CONFINED_NOTE if profile else DECLARED_NOTE
    cli.out.note(f"agentbox: {OPEN_NOTE if profile == 'unrestricted' else confined}")
    try:
        with cli.client() as client:
            stdin = input_file.read() if input_file else None
            if state:
                _note_state_owner(cli, client, state)
            task_id = _submit_task(client, spec, timeout_s, stdin)
            sink = BufferSink() if no_stream or cli.json else TerminalSink()
            reader = LogReader(client, task_id, sink)
            with contextlib.closing(sink):
                task = _follow_log(cli, client, reader)
        _print_result(cli, task, sink, reader.review)
    except AgentboxError as error:
        cli.out.error(f"agentbox: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
        return EXIT_AGENTBOX_FAILED
    except BrokenPipeError:
        raise  # handled by `main`
    except OSError as error:
        with contextlib.suppress(OSError):
            cli.out.error(f"agentbox: cannot finish run: {error.strerror}")
        discard_unwritten()
        return EXIT_AGENTBOX_FAILED
    return EXIT_AGENTBOX_FAILED if reader.output_lost else exit_code(task)


def _note_state_owner(cli: CliContext, client: BoxClient, state: str) -> None:
    """Prints a note when a token owns the state: its earlier runs may have left data there."""
    from agentbox.client import ApiError

    try:
        owner = client.states.show(state).owner
    except ApiError as error:
        if error.status not in _NO_STATE_STATUSES:
            raise
    else:
        if owner != _OPERATOR:
            cli.out.note(
                f"agentbox: state {state} belongs to {owner}: the command reads the data of its "
                "runs"
            )


def _submit_task(
    client: BoxClient, spec: Mapping[str, Any], timeout_s: float, stdin: bytes | None
) -> str:
    """Submits the task and returns its id; retries with the same key if the response is lost.

    Raises BoxUnreachable at once if the first connection fails, else after 15 s of retries.
    """
    from agentbox.client import BoxUnreachable
    from agentbox.client.http_transport import ConnectError

    key, deadline, maybe_sent = f"run:{uuid7()}", time.monotonic() + _RETRY_TIMEOUT_SECONDS, False
    while True:
        try:
            return client.submit_task(
                spec, timeout_s=timeout_s, input=stdin, dedup_key=key, attached=True
            ).task_id
        except BoxUnreachable as error:
            maybe_sent = maybe_sent or not isinstance(error.__cause__, ConnectError)
            if not maybe_sent or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_DELAY_SECONDS)


def parse_env(env: tuple[str, ...]) -> dict[str, str]:
    for entry in env:
        if "=" not in entry:
            raise click.BadParameter(f"{entry!r} is not NAME=VALUE", param_hint="--env")
    return dict(entry.split("=", 1) for entry in env)


def _follow_log(cli: CliContext, client: BoxClient, reader: LogReader) -> Task:
    """Reads the log to its end. The first Ctrl-C, or a closed terminal, cancels the task."""
    try:
        return reader.read()
    except KeyboardInterrupt:
        cli.out.error(f"agentbox: cancelling {reader.task_id}")
        client.cancel_task(reader.task_id)
        return reader.read()
    except OSError:  # of the output
        client.cancel_task(reader.task_id)
        raise


def _print_result(
    cli: CliContext, task: Task, sink: Sink, review: Mapping[str, Any] | None
) -> None:
    if isinstance(sink, BufferSink) and not cli.json:
        with contextlib.closing(TerminalSink()) as terminal:
            for item in sink.items:
                terminal.write(item)
    if isinstance(sink, BufferSink):
        texts = {"stdout": sink.text("stdout"), "stderr": sink.text("stderr")}
        cli.out.document({**task.to_wire(), **texts, "review": review})
    if not cli.json:
        cli.out.note(f"agentbox: task {task.task_id} {task.state}: {task.note}")
        if review is not None:
            cli.out.note(
                f"agentbox: {_format_changed(review)}: agentbox review show {review['agent_id']}"
            )


def _format_changed(review: Mapping[str, Any]) -> str:
    files = sum(review[kind] for kind in ("added", "modified", "deleted"))
    commits = pluralize(review["commits"], "commit") if review.get("commits") else ""
    if not files and commits:
        return commits
    return f"{pluralize(files, 'file')} changed{', ' if commits else ''}{commits}"


def exit_code(task: Task) -> int:
    """The code that this command returns for a finished task."""
    status: dict[str, Any] = dict(task.exit or {})
    if task.state == "cancelled":
        return ExitCode.INTERRUPTED
    if status.get("reason") == "timeout":
        return EXIT_TIMED_OUT
    if status.get("reason") in ("exit", "limit", "signal") and status.get("code") is not None:
        return int(status["code"])
    if status.get("reason") in ("signal", "limit") and status.get("signal"):
        return EXIT_SIGNAL_BASE + signal_number(str(status["signal"]))
    return EXIT_AGENTBOX_FAILED


def signal_number(name: str) -> int:
    import signal

    full = name if name.startswith("SIG") else f"SIG{name}"
    return int(signal.Signals[full]) if full in signal.Signals.__members__ else 0
