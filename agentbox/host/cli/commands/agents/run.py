"""`agentbox run`: one command in the box, as a task whose output comes to this terminal."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.ids import uuid7
from agentbox.host.cli.context import Cli
from agentbox.host.cli.output import counted
from agentbox.host.cli.streams import abandon
from agentbox.host.cli.terminal import Output

if TYPE_CHECKING:
    from agentbox.client import BoxClient, LogItem, Task

CONFINED = (
    "confined by the kernel to its profile, its network is the gateway; what that does not stop: docs/security.md"
)
DECLARED = "confined by the kernel as the manifest has this agent; what that does not stop: docs/security.md"
OPEN = "confined by the kernel to its files and processes, its network is open; docs/security.md"
DROPPED = "some of the output is missing here: the box does not keep it any more"
FAILED_ITSELF = 125
TIMED_OUT = 124
BY_SIGNAL = 128
_PATIENCE_SECONDS = 15.0  # a killed API is back within two
_RETRY_SECONDS = 0.2
_OPERATOR = "urn:agentbox:operator"
_NO_STATE = (403, 404)  # whose use is refused, or that is made now


@click.command(
    name="run",
    context_settings={"allow_interspersed_args": False},
    epilog="Exit code: the command's own; 128 + n when signal n ended it, 124 at the time limit, 125 when agentbox failed or "
    "output was lost.",
)
@click.option("--agent", default="", metavar="NAME", help="Run this agent of the manifest, with its own command.")
@click.option(
    "--name", "state", default="", metavar="N", help="Share the state of this name: memory and pods that stay."
)
@click.option("--profile", default="", metavar="P", help="Profile of the agent. [default: sandboxed, or that of NAME]")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True, metavar="S",
    help="End it after S seconds.",
)  # fmt: skip
@click.option("--cwd", default="", metavar="DIR", help="Folder in the box. [default: /workspace]")
@click.option(
    "--env", "-e", multiple=True, metavar="NAME=VALUE", help="Set a variable of its environment; may be repeated."
)
@click.option("--input", "given", type=click.File("rb"), help="Feed this file (- for stdin) to its standard input.")
@click.option(
    "--direct",
    is_flag=True,
    help="Let it write the workspace itself, its .git too, without a review. Needs scope admin.",
)
@click.option("--no-stream", is_flag=True, help="Print the output when the command has ended.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD...")
@click.pass_obj
def command(
    cli: Cli, agent: str, state: str, profile: str, timeout_s: float, cwd: str, env: tuple[str, ...], given: IO[bytes] | None, direct: bool,
    no_stream: bool, argv: tuple[str, ...],
) -> int:  # fmt: skip
    """Run one command in the box, or an agent of the manifest by its name, and return its exit code.

    Its output streams to this terminal. Ctrl-C ends it. A bead in the box is its receipt. It works in a copy of the
    workspace; what it changed there waits for `agentbox review`.
    """
    if bool(argv) == bool(agent):
        raise click.UsageError("Say what to run: either CMD..., or --agent NAME.")
    name, profile = agent or Path(argv[0]).name[:64], profile or ("" if agent else "sandboxed")
    spec = {"name": name, "argv": list(argv), "profile": profile, "cwd": cwd, "env": _variables(env)}
    spec |= {"agent": agent} if agent else {}
    spec |= {"state": state} if state else {}
    spec |= {"workspace": "direct"} if direct else {}
    cli.out.note(f"agentbox: {OPEN if profile == 'unrestricted' else CONFINED if profile else DECLARED}")
    try:
        with cli.client() as client:
            stdin = given.read() if given else None
            if state:
                _tell_owner(cli, client, state)
            task_id = _submit(client, spec, timeout_s, stdin)
            sink = _Collected() if no_stream or cli.json else _Terminal()
            reader = _Reader(client, task_id, sink)
            with contextlib.closing(sink):
                task = _follow(cli, client, reader)
        _finish(cli, task, sink, reader.review)
    except AgentboxError as error:
        cli.out.error(f"agentbox: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
        return FAILED_ITSELF
    except BrokenPipeError:
        raise  # as every command
    except OSError as error:
        with contextlib.suppress(OSError):
            cli.out.error(f"agentbox: cannot finish run: {error.strerror}")
        abandon()
        return FAILED_ITSELF
    return FAILED_ITSELF if reader.lost else exit_code(task)


def _tell_owner(cli: Cli, client: BoxClient, state: str) -> None:
    """That a token made the state, where one did: an admin uses it all the same, with all that was left there."""
    from agentbox.client import ApiError

    try:
        owner = client.states.get(state)["owner"]
    except ApiError as error:
        if error.status not in _NO_STATE:
            raise
    else:
        if owner != _OPERATOR:
            cli.out.note(f"agentbox: state {state} is of {owner}: the command reads what its runs left there")


def _submit(client: BoxClient, spec: Mapping[str, Any], timeout_s: float, stdin: bytes | None) -> str:
    """The task's id. Asked again under the same key when the answer was lost, so that nothing starts twice.

    Raises BoxUnreachable at once when nothing listens at the first try, else when nothing does for 15 s.
    """
    from agentbox.client import BoxUnreachable
    from agentbox.client.http_transport import ConnectError

    key, deadline, sent = f"run:{uuid7()}", time.monotonic() + _PATIENCE_SECONDS, False
    while True:
        try:
            return client.submit_task(spec, timeout_s=timeout_s, input=stdin, dedup_key=key, attached=True).task_id
        except BoxUnreachable as error:
            sent = sent or not isinstance(error.__cause__, ConnectError)
            if not sent or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def _variables(env: tuple[str, ...]) -> dict[str, str]:
    for entry in env:
        if "=" not in entry:
            raise click.BadParameter(f"{entry!r} is not NAME=VALUE", param_hint="--env")
    return dict(entry.split("=", 1) for entry in env)


class _Terminal:
    """Writes each piece where it belongs, as it comes."""

    def __init__(self) -> None:
        self._output = Output()

    def take(self, item: LogItem) -> None:
        self._output.write(item.kind, item.data)

    def close(self) -> None:
        self._output.close()


class _Collected:
    """Keeps the output until the end."""

    def __init__(self) -> None:
        self.items: list[LogItem] = []

    def take(self, item: LogItem) -> None:
        self.items.append(item)

    def close(self) -> None:
        """There is nothing to end."""

    def text(self, kind: str) -> str:
        return b"".join(item.data for item in self.items if item.kind == kind).decode("utf-8", "replace")


Sink = _Terminal | _Collected


def _follow(cli: Cli, client: BoxClient, reader: _Reader) -> Task:
    """Reads the log to its end. The first Ctrl-C, or a terminal that went away, cancels the task."""
    try:
        return reader.read()
    except KeyboardInterrupt:
        cli.out.error(f"agentbox: cancelling {reader.task_id}")
        client.cancel_task(reader.task_id)
        return reader.read()
    except OSError:  # of the output
        client.cancel_task(reader.task_id)
        raise


class _Reader:
    """The log of one task; reading goes on where it was left. `review`: what the log said that its agent changed; `lost`:
    that some of the output is not in it, which is told on stderr."""

    def __init__(self, client: BoxClient, task_id: str, sink: Sink) -> None:
        self._client, self.task_id, self._sink = client, task_id, sink
        self._cursor = 0
        self.review: Mapping[str, Any] | None = None
        self.lost = False

    def read(self) -> Task:
        """The finished task."""
        from agentbox.client import ApiError

        while True:
            try:
                return self._read_on()
            except ApiError as error:
                if error.code != "cursor-expired":
                    raise
                self._lose(DROPPED)
                self._cursor = int(error.problem["oldest"])

    def _read_on(self) -> Task:
        from agentbox.client import Task

        for item in self._client.task_logs(self.task_id, since=self._cursor):
            if isinstance(item, Task):
                return item
            self._sink.take(item)
            self._cursor = item.cursor
            if item.kind == "state":
                self._note(json.loads(item.data))
        raise AgentboxError(f"cannot follow task {self.task_id}: its log ended without a result")

    def _note(self, said: Mapping[str, Any]) -> None:
        if said.get("state") == "review":
            self.review = {name: value for name, value in said.items() if name != "state"}
        elif said.get("state") == "truncated":
            self._lose(DROPPED)
        elif said.get("state") == "unkept":
            self._lose(f"{said.get('bytes')} bytes of output were lost: the box could not store them")

    def _lose(self, what: str) -> None:
        self.lost = True
        print(f"agentbox: {what}", file=sys.stderr, flush=True)


def _finish(cli: Cli, task: Task, sink: Sink, review: Mapping[str, Any] | None) -> None:
    if isinstance(sink, _Collected) and not cli.json:
        with contextlib.closing(_Terminal()) as terminal:
            for item in sink.items:
                terminal.take(item)
    if isinstance(sink, _Collected):
        texts = {"stdout": sink.text("stdout"), "stderr": sink.text("stderr")}
        cli.out.document({**task.to_wire(), **texts, "review": review})
    if not cli.json:
        cli.out.note(f"agentbox: task {task.task_id} {task.state}: {task.note}")
        if review is not None:
            cli.out.note(f"agentbox: {_changed(review)}: agentbox review show {review['agent_id']}")


def _changed(review: Mapping[str, Any]) -> str:
    return f"{counted(sum(review[what] for what in ('added', 'modified', 'deleted')), 'file')} changed"


def exit_code(task: Task) -> int:
    """The code that this command returns for a finished task."""
    ended: dict[str, Any] = dict(task.exit or {})
    if task.state == "cancelled":
        return ExitCode.INTERRUPTED
    if ended.get("reason") == "timeout":
        return TIMED_OUT
    if ended.get("reason") in ("exit", "limit", "signal") and ended.get("code") is not None:
        return int(ended["code"])
    if ended.get("reason") in ("signal", "limit") and ended.get("signal"):
        return BY_SIGNAL + _number(str(ended["signal"]))
    return FAILED_ITSELF


def _number(name: str) -> int:
    import signal

    full = name if name.startswith("SIG") else f"SIG{name}"
    return int(signal.Signals[full]) if full in signal.Signals.__members__ else 0
