"""`agentbox user`: people who operate the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentbox.contracts.roles import ROLES
from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.contracts.users import User

_role = click.Choice(ROLES)


@click.group(name="user")
def command() -> None:
    """Manage people who operate the box: each has a name and one role.

    viewer: sees beads, agents, approvals. auditor: viewer, the journal and its checks, backups.
    reviewer: viewer, the journal, decides reviews and approvals. operator: reviewer, agents, beads,
    pods, memory, makes backups. admin: everything.
    """


@command.command()
@click.argument("name")
@click.option("--role", type=_role, required=True, help="What the user may do.")
@click.pass_obj
def add(cli: CliContext, name: str, role: str) -> None:
    """Add a user. The name is never given to another person."""
    with cli.client() as client:
        user = client.users.add(name, role)
    _show(cli, user)


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List users: name, role, and whether disabled."""
    with cli.client() as client:
        users = client.users.list().items
    cli.out.document([user.to_wire() for user in users])
    for user in users:
        cli.out.line(_line(user))


@command.command()
@click.argument("name")
@click.argument("role", type=_role)
@click.pass_obj
def role(cli: CliContext, name: str, role: str) -> None:
    """Give a user another role, at once."""
    with cli.client() as client:
        user = client.users.set_role(name, role)
    _show(cli, user)


@command.command()
@click.argument("name")
@click.pass_obj
def disable(cli: CliContext, name: str) -> None:
    """End a user's tokens, sessions and open streams, at once."""
    with cli.client() as client:
        user = client.users.disable(name)
    _show(cli, user)


@command.command()
@click.argument("name")
@click.pass_obj
def enable(cli: CliContext, name: str) -> None:
    """Let a disabled user sign in again. Tokens and sessions do not come back."""
    with cli.client() as client:
        user = client.users.enable(name)
    _show(cli, user)


@command.command()
@click.argument("name")
@click.pass_obj
def login(cli: CliContext, name: str) -> None:
    """Print what a user signs in with, once, within 15 minutes.

    A link where the box has a page that takes it, else the code alone, for POST /v1/session.
    """
    with cli.client() as client:
        made = client.users.make_code(name)
        url = client.url
    cli.out.document({**made.to_wire(), "url": f"{url}{made.page}" if made.page else ""})
    cli.out.line(f"{url}{made.page}#code={made.code}" if made.page else made.code)
    if not made.page:
        cli.out.note("this box has no page that takes the code: send it to POST /v1/session")


def _show(cli: CliContext, user: User) -> None:
    cli.out.document(user.to_wire())
    cli.out.line(_line(user))


def _line(user: User) -> str:
    return f"{user.name}  {user.role}{'' if user.disabled_at is None else '  disabled'}"
