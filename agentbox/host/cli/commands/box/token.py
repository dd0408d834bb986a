"""`agentbox token`: named API tokens."""

from __future__ import annotations

import re

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _parse_span(_ctx: click.Context, _param: click.Parameter, value: str) -> int | None:
    """Parses `90d`, `12h`, `30m` or `10s` to seconds, `never` to None."""
    if value == "never":
        return None
    match = re.fullmatch(r"(\d{1,9})([smhd])", value)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter("must be a time span such as 90d, 12h, 30m or 10s, or never")
    return int(match[1]) * _UNITS[match[2]]


@click.group(name="token")
def command() -> None:
    """Manage API tokens: scopes, expiry and bindings."""


@command.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="S",
    help="Such as beads:read; may be repeated.",
)
@click.option(
    "--expires",
    callback=_parse_span,
    default="90d",
    show_default=True,
    metavar="SPAN",
    help="90d, 12h, 30m, or never.",
)
@click.option("--pod-prefix", default="", metavar="P", help="Only pods whose path has this prefix.")
@click.option(
    "--memory-prefix", default="", metavar="N", help="Only memory namespaces with this prefix."
)
@click.option(
    "--event-source", default="", metavar="S", help="The only source its events may have."
)
@click.option("--origin-box", default="", metavar="B", help="The box whose journal it may deliver.")
@click.option("--user", default="", metavar="U", help="Whose token it is; ends with that user.")
@click.option(
    "--rate",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="At most N requests per second; 0: unlimited.",
)
@click.pass_obj
def create(
    cli: CliContext,
    rate: int,
    name: str,
    scopes: tuple[str, ...],
    expires: int | None,
    pod_prefix: str,
    memory_prefix: str,
    event_source: str,
    origin_box: str,
    user: str,
) -> None:
    """Create a token and show its value, once: the box stores only a hash."""
    body = {
        "name": name,
        "scopes": list(scopes),
        "ttl_s": expires,
        "pod_prefix": pod_prefix,
        "memory_prefix": memory_prefix,
        "event_source": event_source,
        "rate": rate,
        "origin_box": origin_box,
        "user": user,
    }
    with cli.client() as client:
        token = client.call("create_token", body=body)
    cli.out.document(token)
    cli.out.line(token["value"])
    cli.out.note(
        f"id {token['id']}, expires {token['expires_at'] or 'never'}; the value is not shown again"
    )


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List tokens: id, name, expiry, scopes, user, and whether a restore disabled it."""
    with cli.client() as client:
        items = client.call("list_tokens")["items"]
    cli.out.document(items)
    for item in items:
        cli.out.line(
            f"{item['id']}  {item['name']}  {item['expires_at'] or 'never'}  "
            f"{' '.join(item['scopes'])}{'  disabled' if item['disabled'] else ''}"
            f"{'  of ' + item['user'] if item['user'] else ''}"
        )


@command.command()
@click.argument("token", metavar="NAME|ID")
@click.pass_obj
def enable(cli: CliContext, token: str) -> None:
    """Let a token work again that a restore disabled.

    It may have been revoked after the snapshot was made: look at `agentbox token list` first.
    """
    with cli.client() as client:
        found = [
            item
            for item in client.call("list_tokens")["items"]
            if token == item["id"] or (token == item["name"] and item["disabled"])
        ]
        if len(found) != 1:
            raise _not_one(token, [item["id"] for item in found])
        enabled = client.call("enable_token", {"id": found[0]["id"]})
    cli.out.document(enabled)
    cli.out.line(
        f"{enabled['name']} works, expires {enabled['expires_at'] or 'never'}: {enabled['id']}"
    )


def _not_one(name: str, ids: list[str]) -> AgentboxError:
    if ids:
        return AgentboxError(
            f"cannot enable {name}: {len(ids)} disabled tokens have that name",
            f"Give the id of one: {', '.join(ids)}.",
            exit_code=ExitCode.USAGE,
        )
    return AgentboxError(
        f"cannot enable {name}: no disabled token has that name",
        "`agentbox token list` shows names, ids, and which tokens are disabled.",
        exit_code=ExitCode.USAGE,
    )


@command.command()
@click.argument("id")
@click.pass_obj
def revoke(cli: CliContext, id: str) -> None:
    """Revoke a token by its id, effective immediately."""
    with cli.client() as client:
        client.call("revoke_token", {"id": id})
    cli.out.document({"revoked": id})
    cli.out.line(f"revoked {id}")
