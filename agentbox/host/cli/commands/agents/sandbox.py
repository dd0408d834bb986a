"""`agentbox sandbox`: programs run one after another, or side by side, under one confinement."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from agentbox.core import clock
from agentbox.core.errors import AgentboxError
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.agent_output import AgentOutput
from agentbox.host.cli.commands.agents.exec_output import exec_exit_code, format_program, tells_loss
from agentbox.host.cli.commands.agents.run import EXIT_AGENTBOX_FAILED, parse_env
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.id_argument import find_id, id_argument

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.sandboxes import Sandbox

_SIGNALS = ("INT", "TERM", "HUP", "USR1", "USR2", "STOP", "CONT")
_BLOCK = 1 << 20
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_OUTPUT = 8 << 20  # bytes: the most that a box stores of each stream


@click.group(name="sandbox")
def command() -> None:
    """Run programs in a sandbox: create, exec, cp, list, show, logs, signal, end.

    A sandbox has the branch, HOME, token and policy of an agent, but no program of its own. Its
    changes wait for `agentbox review` once it has ended.
    """


@command.command()
@click.option(
    "--profile", default="", metavar="P", help="Profile of the sandbox. [default: sandboxed]"
)
@click.option(
    "--env",
    "-e",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a variable for all of its programs; may be repeated.",
)
@click.option(
    "--ttl",
    "ttl_s",
    type=click.FloatRange(60, 86400),
    default=None,
    metavar="S",
    help="End it after S seconds. [default: sandboxes.ttl_seconds]",
)
@click.argument("name", default="sandbox")
@click.pass_obj
def create(
    cli: CliContext, profile: str, env: tuple[str, ...], ttl_s: float | None, name: str
) -> None:
    """Create a sandbox, called NAME; print its id."""
    with cli.client() as client:
        sandbox = client.sandboxes.create(name, profile=profile, env=parse_env(env), ttl_s=ttl_s)
    cli.out.document(sandbox.to_wire())
    cli.out.line(sandbox.sandbox_id)


@command.command(
    name="exec",
    context_settings={"allow_interspersed_args": False},
    epilog="Exit code: the command's own; 128 + n if signal n ended it, 124 at the time limit, 126 "
    "or 127 if it could not be started, 125 if agentbox failed.",
)
@click.option(
    "--cwd", default="", metavar="DIR", help="Directory in the sandbox. [default: /workspace]"
)
@click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="Set a variable.")
@click.option(
    "--input",
    "input_file",
    type=click.File("rb"),
    help="Feed this file (- for stdin) to its standard input.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="S",
    help="End it after S seconds.",
)
@click.option(
    "--detach", "-d", is_flag=True, help="Do not wait: print its number, for `logs` and `signal`."
)
@id_argument("sandbox", "sandbox_id")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] CMD...")
@click.pass_obj
def exec_(
    cli: CliContext,
    cwd: str,
    env: tuple[str, ...],
    input_file: IO[bytes] | None,
    timeout_s: float,
    detach: bool,
    sandbox_id: str,
    argv: tuple[str, ...],
) -> int:
    """Run one command in a sandbox and return its exit code."""
    if argv[0].startswith("-") and argv[0] != "--":
        raise click.UsageError(
            f"Put {argv[0]} before {sandbox_id}, or -- between them if it is the command."
        )
    command_argv = list(argv[1:] if argv[0] == "--" else argv)
    if not command_argv:
        raise click.UsageError("Give a command.")
    options: dict[str, Any] = {
        "cwd": cwd,
        "env": parse_env(env),
        "timeout_s": timeout_s,
        "max_output": MAX_OUTPUT,
    }
    if input_file:
        options["stdin"] = input_file.read()
    try:
        with cli.client() as client:
            started = client.sandboxes.exec(sandbox_id, command_argv, detach=True, **options)
            if detach:
                cli.out.document({"n": started.n})
                cli.out.line(str(started.n))
                return 0
            _follow(client, sandbox_id, started.n)
            execs = client.sandboxes.show(sandbox_id).execs
    except AgentboxError as error:
        cli.out.error(f"agentbox: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
        return EXIT_AGENTBOX_FAILED
    found = next((one for one in execs if one.n == started.n), None)
    cli.out.document({} if found is None else found.to_wire())
    if found is None or found.exit is None:
        return EXIT_AGENTBOX_FAILED
    if found.exit.detail:
        cli.out.error(f"agentbox: cannot run it: {escape_invisible(found.exit.detail)}")
    return exec_exit_code(found.exit)


@command.command()
@click.argument("source")
@click.argument("target")
@click.pass_obj
def cp(cli: CliContext, source: str, target: str) -> None:
    """Copy a file into or out of a running sandbox: SOURCE to TARGET, one of which is ID:PATH.

    PATH begins with /workspace/ (the branch) or /tmp/ (TMPDIR of its programs); links are not
    followed. - is standard input or output.
    """
    (from_id, from_path), (to_id, to_path) = _split_path(source), _split_path(target)
    if bool(from_id) == bool(to_id):
        raise click.UsageError("Give one path in a sandbox, as ID:/workspace/..., and one here.")
    with cli.client() as client:
        from_id, to_id = (find_id(client, "sandbox", one) for one in (from_id, to_id))
        if to_id:
            with click.open_file(from_path, "rb") as stream:
                client.sandbox_files.write(to_id, to_path, iter(lambda: stream.read(_BLOCK), b""))
        else:
            data = client.sandbox_files.read(from_id, from_path)
            _write_file(to_path, data)


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List all sandboxes, oldest first."""
    from agentbox.client import every

    with cli.client() as client:
        sandboxes: list[Sandbox] = list(every(client.sandboxes.list))
    cli.out.document([sandbox.to_wire() for sandbox in sandboxes])
    for sandbox in sandboxes:
        cli.out.line(_format(sandbox))


@command.command()
@id_argument("sandbox", "sandbox_id")
@click.pass_obj
def show(cli: CliContext, sandbox_id: str) -> None:
    """Show a sandbox and its programs."""
    with cli.client() as client:
        sandbox = client.sandboxes.show(sandbox_id)
    cli.out.document(sandbox.to_wire())
    cli.out.line(_format(sandbox))
    for program in sandbox.execs:
        cli.out.line(format_program(program))


@command.command()
@click.option("-f", "--follow", is_flag=True, help="Follow until the program has ended.")
@id_argument("sandbox", "sandbox_id")
@click.argument("n")
@click.pass_obj
def logs(cli: CliContext, follow: bool, sandbox_id: str, n: str) -> None:
    """Show the stored output of the program with number N."""
    with cli.client() as client, closing(AgentOutput()) as output:
        for item in client.sandboxes.stream(sandbox_id, n, follow=follow):
            output.write(item.kind, item.data)


@command.command()
@id_argument("sandbox", "sandbox_id")
@click.argument("n")
@click.argument("signal", type=click.Choice(_SIGNALS), default="TERM")
@click.pass_obj
def signal(cli: CliContext, sandbox_id: str, n: str, signal: str) -> None:
    """Send SIGNAL (TERM by default) to the program with number N."""
    with cli.client() as client:
        client.sandboxes.signal(sandbox_id, n, signal)


@command.command()
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(0, 60),
    default=None,
    metavar="S",
    help="From TERM to KILL.",
)
@id_argument("sandbox", "sandbox_id")
@click.pass_obj
def end(cli: CliContext, grace_s: float | None, sandbox_id: str) -> None:
    """End a sandbox with all its programs; its changes wait for a review."""
    with cli.client() as client:
        sandbox = client.sandboxes.end(sandbox_id, grace_s=grace_s)
    cli.out.document(sandbox.to_wire())
    cli.out.line(_format(sandbox))
    if sandbox.branch.get("review"):
        cli.out.note(f"agentbox: agentbox review show {sandbox_id}")


def _follow(client: BoxClient, sandbox_id: str, n: int) -> None:
    """Prints the output until the program has ended. Ctrl-C interrupts the program."""
    position, is_complete = 0, True
    with closing(AgentOutput()) as output:
        while True:
            try:
                for item in client.sandboxes.stream(sandbox_id, str(n), since=position):
                    output.write(item.kind, item.data)
                    position = item.cursor
                    if item.kind == "state":
                        is_complete = is_complete and not tells_loss(item)
            except KeyboardInterrupt:
                client.sandboxes.signal(sandbox_id, str(n), "INT")
            else:
                break
    if not is_complete:
        raise AgentboxError(
            f"part of the output of program {n} is missing",
            "Write large output to a file, and copy it with `agentbox sandbox cp`.",
        )


def _write_file(path: str, data: bytes) -> None:
    """- is standard output, where a terminal is told nothing but text."""
    if path == "-":
        with closing(AgentOutput()) as output:
            output.write("stdout", data)
    else:
        Path(path).write_bytes(data)


def _split_path(argument: str) -> tuple[str, str]:
    """Id and path of a path in a sandbox; without an id, a path on this machine."""
    sandbox_id, colon, path = argument.partition(":")
    if not colon or not _ID.fullmatch(sandbox_id):
        return "", argument
    return sandbox_id, path.lstrip("/")


def _format(sandbox: Sandbox) -> str:
    running = sum(program.exit is None for program in sandbox.execs)
    expires = clock.to_wire(sandbox.expires_at)[:19] if sandbox.expires_at else "-"
    return (
        f"{sandbox.sandbox_id}  {sandbox.state:<9} {expires:<19}  {running:>3}  "
        f"{escape_invisible(sandbox.profile):<12} {escape_invisible(sandbox.name)}"
    )
