"""`agentbox session`: agents that speak the Agent Client Protocol, without an editor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.agent_output import AgentOutput
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.session_text import SessionText, format_markdown, format_session

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.sessions import Session, SessionItem

_PAGE = 500


@click.group(name="session")
def command() -> None:
    """Work with agents that speak the Agent Client Protocol (ACP), without an editor.

    A session is one agent in a sandbox of its own. It is named by its id or its name. Its changes
    wait for `agentbox review` once it is closed.
    """


@command.command()
@click.option(
    "--agent",
    default="",
    metavar="NAME",
    help='Table in [agents] with protocol = "acp". [default: the only one]',
)
@click.option("--cwd", default="/workspace", show_default=True, metavar="DIR", help="In the box.")
@click.argument("name", default="")
@click.pass_obj
def new(cli: CliContext, agent: str, cwd: str, name: str) -> None:
    """Open a session, called NAME; print its id."""
    with cli.client() as client:
        session = client.sessions.create(name=name, agent=agent, cwd=cwd)
    cli.out.document(session.to_wire())
    cli.out.line(session.session_id)


@command.command(
    epilog="Exit code: 0 if the agent ended its turn by itself, else 1. Ctrl-C cancels the turn."
)
@click.option("--detach", "-d", is_flag=True, help="Do not wait for the end of the turn.")
@click.argument("session_id", metavar="SESSION")
@click.argument("text")
@click.pass_obj
def prompt(cli: CliContext, detach: bool, session_id: str, text: str) -> int:
    """Give the agent TEXT (- for stdin) and show what it does until its turn ends."""
    words = sys.stdin.read() if text == "-" else text
    with cli.client() as client:
        since = client.sessions.show(session_id).head
        turn = client.sessions.prompt(session_id, words).turn
        if detach:
            cli.out.document({"turn": turn})
            cli.out.line(str(turn))
            return 0
        return _follow(cli, client, session_id, since, turn)


@command.command()
@click.option("--all", "from_start", is_flag=True, help="From the start of the session.")
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def attach(cli: CliContext, from_start: bool, session_id: str) -> None:
    """Follow a session until it is closed or Ctrl-C; the session goes on."""
    with cli.client() as client:
        since = 0 if from_start else client.sessions.show(session_id).head
        _show(cli, client.sessions.stream(session_id, since=since))


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List all sessions, oldest first."""
    from agentbox.client import every

    with cli.client() as client:
        sessions: list[Session] = list(every(client.sessions.list))
    cli.out.document([session.to_wire() for session in sessions])
    for session in sessions:
        cli.out.line(format_session(session))


@command.command()
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def show(cli: CliContext, session_id: str) -> None:
    """Show a session, and the questions of its agent that wait."""
    with cli.client() as client:
        _print(cli, client.sessions.show(session_id))


@command.command()
@click.argument("session_id", metavar="SESSION")
@click.argument("permission_id", metavar="QUESTION")
@click.argument("option_id", metavar="[ANSWER]", default="")
@click.pass_obj
def answer(cli: CliContext, session_id: str, permission_id: str, option_id: str) -> None:
    """Answer a question of the agent; without ANSWER it is cancelled."""
    with cli.client() as client:
        _print(cli, client.sessions.decide(session_id, permission_id, option_id=option_id))


@command.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(("md", "jsonl")),
    default="md",
    show_default=True,
    help="Markdown, or one JSON object a line.",
)
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def transcript(cli: CliContext, form: str, session_id: str) -> None:
    """Print everything that happened in a session."""
    import json

    with cli.client() as client:
        items = _items(client, session_id)
        if form == "jsonl":
            for item in items:
                cli.out.block(json.dumps(item.to_wire(), separators=(",", ":")))
        else:
            for piece in format_markdown(items):
                cli.out.block(piece.removesuffix("\n"))


@command.command()
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def cancel(cli: CliContext, session_id: str) -> None:
    """Cancel the turn, and the questions that wait."""
    with cli.client() as client:
        _print(cli, client.sessions.cancel(session_id))


@command.command()
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def suspend(cli: CliContext, session_id: str) -> None:
    """End the agent's program; branch, HOME and grants stay."""
    with cli.client() as client:
        _print(cli, client.sessions.suspend(session_id))


@command.command()
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def resume(cli: CliContext, session_id: str) -> None:
    """Start the program of a suspended session again."""
    with cli.client() as client:
        _print(cli, client.sessions.resume(session_id))


@command.command()
@click.argument("session_id", metavar="SESSION")
@click.pass_obj
def close(cli: CliContext, session_id: str) -> None:
    """Close a session; its changes wait for a review."""
    with cli.client() as client:
        session = client.sessions.close(session_id)
    _print(cli, session)
    if session.sandbox_id:
        cli.out.note(f"agentbox: agentbox review show {session.sandbox_id}")


def _print(cli: CliContext, session: Session) -> None:
    from agentbox.host.cli.session_text import format_permission
    from agentbox.host.cli.usage_text import models_line, run_line

    cli.out.document(session.to_wire())
    cli.out.line(format_session(session))
    if session.reason:
        cli.out.line(session.reason)
    if session.models is not None:
        cli.out.line(models_line(session.models.to_wire()))
    if resources := run_line(session.resources):
        cli.out.line(resources)
    for asked in session.permissions:
        cli.out.line(format_permission(asked.to_wire()))


def _follow(cli: CliContext, client: BoxClient, session_id: str, since: int, turn: int) -> int:
    """Shows a turn until its end; Ctrl-C cancels it. The exit code."""
    seen: list[SessionItem] = []

    def until_stop(since: int) -> Iterator[SessionItem]:
        for item in client.sessions.stream(session_id, since=since):
            seen.append(item)
            yield item
            if item.turn == turn and item.kind == "stop":
                return

    while not (seen and seen[-1].turn == turn and seen[-1].kind == "stop"):
        try:
            _show(cli, until_stop(seen[-1].cursor if seen else since))
        except KeyboardInterrupt:
            client.sessions.cancel(session_id)
            continue
        if not seen or seen[-1].kind != "stop":
            raise AgentboxError(
                "the session ended before its turn did",
                f"`agentbox session show {session_id}` tells why.",
            )
    reason: Any = seen[-1].data.get("stop_reason")
    return 0 if reason == "end_turn" else int(ExitCode.BAD)


def _show(cli: CliContext, items: Iterator[SessionItem]) -> None:
    text = SessionText()
    with closing(AgentOutput()) as output:
        for item in items:
            cli.out.row(item.to_wire())
            if not cli.json:
                output.write("stdout", text.format(item).encode())
        if not cli.json:
            output.write("stdout", text.finish().encode())


def _items(client: BoxClient, session_id: str) -> Iterator[SessionItem]:
    since: int | None = 0
    while since is not None:
        page = client.sessions.transcript(session_id, since=since, limit=_PAGE)
        yield from page.items
        since = page.next
