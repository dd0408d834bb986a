"""`agentbox approvals`: actions of agents that wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible import visible
from agentbox.host.cli.context import Cli

_SHOWN = (
    "id",
    "agent_id",
    "name",
    "kind",
    "value",
    "parameters",
    "words",
    "digest",
    "state",
    "by",
    "reason",
    "expires_at",
)


@click.group(name="approvals")
def command() -> None:
    """Actions that wait for you: list, show, approve, deny."""


@command.command(name="list")
@click.pass_obj
def list_(cli: Cli) -> None:
    """What waits, and what was decided in the last day; oldest first."""
    with cli.client() as client:
        found = client.approvals.list()
    cli.out.document(list(found))
    for one in found:
        cli.out.line(
            f"{one['id']}  {one['state']:<8}  {visible(one['name'])[:40]}  {one['kind']} {visible(one['value'])[:80]}"
        )


@command.command()
@click.argument("id")
@click.pass_obj
def show(cli: Cli, id: str) -> None:
    """One action, with its real parameters. What the agent says of it is in quotation marks."""
    with cli.client() as client:
        _show(cli, client.approvals.get(id))


@command.command()
@click.option("--reason", default="", help="Why; it is kept in the journal.")
@click.argument("id")
@click.pass_obj
def approve(cli: Cli, reason: str, id: str) -> None:
    """Let it happen, once. Exit 7 when it is decided already."""
    _decide(cli, id, "approve", reason)


@command.command()
@click.option("--reason", default="", help="Why; the agent is told, and it is kept in the journal.")
@click.argument("id")
@click.pass_obj
def deny(cli: Cli, reason: str, id: str) -> None:
    """Refuse it; an equal one stays refused for 10 minutes. Exit 7 when it is decided already."""
    _decide(cli, id, "deny", reason)


def _decide(cli: Cli, id: str, verdict: str, reason: str) -> None:
    from agentbox.client import ApiError

    with cli.client() as client:
        try:
            _show(cli, client.approvals.decide(id, verdict, reason))
        except ApiError as error:
            if error.status != 409:
                raise
            raise AgentboxError(error.message, exit_code=ExitCode.BUSY) from error


def _show(cli: Cli, one: Mapping[str, Any]) -> None:
    cli.out.document(one)
    for name in _SHOWN:
        if one[name]:
            cli.out.line(f"{name:<11} {visible(str(one[name]))}")
