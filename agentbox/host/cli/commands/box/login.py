"""`agentbox login`: sessions of people."""

from __future__ import annotations

import click

from agentbox.core import clock
from agentbox.host.cli.context import CliContext


@click.group(name="login")
def command() -> None:
    """List and end sessions of people who have signed in.

    Sessions of agents are those of `agentbox session`.
    """


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List sessions: id, whose, last use, end."""
    with cli.client() as client:
        logins = client.logins.list().items
    cli.out.document([login.to_wire() for login in logins])
    for login in logins:
        used, ends = clock.to_wire(login.used_at), clock.to_wire(login.expires_at)
        cli.out.line(f"{login.id}  {login.principal}  used {used}  ends {ends}")


@command.command()
@click.argument("id")
@click.pass_obj
def end(cli: CliContext, id: str) -> None:
    """End a session by its id, at once."""
    with cli.client() as client:
        client.logins.end(id)
    cli.out.document({"ended": id})
    cli.out.line(f"ended {id}")
