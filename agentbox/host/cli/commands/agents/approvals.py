"""`agentbox approvals`: actions of agents that need an approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.id_argument import id_argument

_FIELDS = (
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
    """List and decide pending approvals: list, show, approve, deny."""


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List pending approvals and those decided in the last day, oldest first."""
    with cli.client() as client:
        approvals = client.call("list_approvals")["items"]
    cli.out.document(approvals)
    for approval in approvals:
        cli.out.line(
            f"{approval['id']}  {approval['state']:<8}  {escape_invisible(approval['name'])[:40]}  "
            f"{approval['kind']} {escape_invisible(approval['value'])[:80]}"
        )


@command.command()
@id_argument("approval", "id")
@click.pass_obj
def show(cli: CliContext, id: str) -> None:
    """Show an action with its real parameters; the agent's own description is in quotation
    marks."""
    with cli.client() as client:
        _print_approval(cli, client.call("get_approval", {"id": id}))


@command.command()
@click.option("--reason", default="", help="Reason, stored in the journal.")
@id_argument("approval", "id")
@click.pass_obj
def approve(cli: CliContext, reason: str, id: str) -> None:
    """Approve the action, once. Exit 7 when it is already decided."""
    _decide(cli, id, "approve", reason)


@command.command()
@click.option("--reason", default="", help="Reason, shown to the agent and stored in the journal.")
@id_argument("approval", "id")
@click.pass_obj
def deny(cli: CliContext, reason: str, id: str) -> None:
    """Deny the action, and equal ones for 10 minutes. Exit 7 when it is already decided."""
    _decide(cli, id, "deny", reason)


def _decide(cli: CliContext, id: str, verdict: str, reason: str) -> None:
    from agentbox.client import ApiError

    with cli.client() as client:
        try:
            body = {"verdict": verdict, "reason": reason}
            _print_approval(cli, client.call("decide_approval", {"id": id}, body=body))
        except ApiError as error:
            if error.status != 409:
                raise
            raise AgentboxError(error.message, exit_code=ExitCode.BUSY) from error


def _print_approval(cli: CliContext, approval: Mapping[str, Any]) -> None:
    cli.out.document(approval)
    for name in _FIELDS:
        if approval[name]:
            cli.out.line(f"{name:<11} {escape_invisible(str(approval[name]))}")
