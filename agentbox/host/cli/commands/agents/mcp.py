"""`agentbox mcp`: the box as tools for desktop clients."""

from __future__ import annotations

import click

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.commands.agents.mcp_servers import list_servers, pin, restart, show, test
from agentbox.host.cli.context import CliContext

_CLIENTS = ("claude-desktop", "claude-code", "cursor", "gemini", "codex")  # of client_settings


@click.group(name="mcp", invoke_without_command=True)
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65535),
    default=None,
    metavar="PORT",
    help="Serve on this port of loopback instead of stdio; the token is printed.",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice(["review-commit"]),
    help="Add the tool review_commit; the client asks a person each time.",
)
@click.pass_context
def command(ctx: click.Context, port: int | None, allowed: tuple[str, ...]) -> None:
    """Serve the box as tools to desktop clients (Model Context Protocol); manage its MCP servers.

    Without a subcommand it speaks the protocol on stdin and stdout. Its token can run programs and
    read, but not decide reviews and approvals.
    """
    if ctx.invoked_subcommand is not None:
        return
    import asyncio

    from agentbox.host.cli.stages.optional_requirements import install

    cli: CliContext = ctx.obj
    install("mcp")
    from agentbox.host.mcp.access import create_token
    from agentbox.host.mcp.server import serve_http, serve_stdio

    record, may_commit = cli.running_record(), "review-commit" in allowed
    token = create_token(cli.manifest, may_commit_reviews=may_commit)
    serving = (
        serve_stdio(record.api_url, token, may_commit_reviews=may_commit)
        if port is None
        else serve_http(record.api_url, token, may_commit_reviews=may_commit, port=port)
    )
    asyncio.run(serving)


for _subcommand in (list_servers, show, pin, test, restart):
    command.add_command(_subcommand)


@command.command()
@click.argument("client", type=click.Choice(_CLIENTS))
@click.pass_obj
def config(cli: CliContext, client: str) -> None:
    """Print the entry for a client's settings, and name the file on stderr."""
    from agentbox.host.mcp.client_settings import client_entry

    words = [str(CHECKOUT / "agentbox.sh"), "--manifest", str(cli.manifest.resolve()), "mcp"]
    file, text = client_entry(client, words)
    cli.out.document({"file": file, "entry": text})
    cli.out.note(f"add this to {file}:")
    cli.out.raw(text.rstrip("\n"))
