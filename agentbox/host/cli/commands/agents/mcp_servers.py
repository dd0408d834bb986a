"""`agentbox mcp list|show|pin|test|restart`: the MCP servers of the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from agentbox.contracts.mcp import McpServer


@click.command(name="list")
@click.pass_obj
def list_servers(cli: CliContext) -> None:
    """List the MCP servers of the box."""
    with cli.client() as client:
        servers = client.mcp.list_servers()
    cli.out.document(servers.to_wire())
    for server in servers.items:
        cli.out.line(_line(server))
    if not servers.items:
        cli.out.line("no MCP server: add a table [mcp.servers.<name>] to agentbox.toml")


@click.command()
@click.argument("name")
@click.pass_obj
def show(cli: CliContext, name: str) -> None:
    """Show an MCP server and its tools, as it was last asked."""
    with cli.client() as client:
        _show(cli, client.mcp.show_server(name))


@click.command()
@click.argument("name")
@click.pass_obj
def test(cli: CliContext, name: str) -> None:
    """Start an MCP server if it does not run, and ask it for its tools.

    Exit code 1: it cannot be asked, or a tool is not as it was pinned.
    """
    with cli.client() as client:
        server = client.mcp.test_server(name)
    _show(cli, server)
    if server.state == "failed" or any(tool.state == "drift" for tool in server.tools):
        raise SystemExit(1)


@click.command()
@click.argument("name")
@click.pass_obj
def restart(cli: CliContext, name: str) -> None:
    """End all instances of an MCP server; the next call starts it again."""
    with cli.client() as client:
        server = client.mcp.restart_server(name)
    cli.out.document(server.to_wire())
    cli.out.line(_line(server))


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def pin(cli: CliContext, name: str, yes: bool) -> None:
    """Show the tools of an MCP server, and pin their definitions.

    Agents are offered a tool only as it was pinned: in agentbox.lock, or with `pin = "first-use"`
    in the state of the box.
    """
    from agentbox.core.errors import AgentboxError
    from agentbox.host.mcp.pinning import describe, pinnable
    from agentbox.host.packages.relock import LOCK_NAME, pin_tools
    from agentbox.mcphost.definitions import definition_digest

    with cli.client() as client:
        server = client.mcp.test_server(name)
        if server.state == "failed":
            raise AgentboxError(
                f"cannot pin {name}: {escape_invisible(server.detail)}",
                "Fix the server, then run this command again.",
            )
        for block in describe(server):
            cli.out.block(block)
        digests = {
            tool: definition_digest(row.definition) for tool, row in pinnable(server).items()
        }
        count = pluralize(len(digests), "tool")
        if not yes and not click.confirm(f"pin {count} of {name}?", err=True):
            raise SystemExit(1)
        if server.pin == "first-use":
            client.mcp.pin_server(name, digests)
    cli.out.document({"server": name, "pins": digests})
    if server.pin == "first-use":
        cli.out.line(f"pinned {count} of {name} in the state of the box")
        return
    path = cli.manifest.resolve().parent / LOCK_NAME
    pin_tools(path, name, digests, base=cli.lock)
    cli.out.line(f"pinned {count} of {name} in {path.name}; `agentbox up` puts them in force")


def _show(cli: CliContext, server: McpServer) -> None:
    cli.out.document(server.to_wire())
    cli.out.line(_line(server))
    if server.detail:
        cli.out.line(f"  {escape_invisible(server.detail)}")
    for tool in server.tools:
        detail = f": {escape_invisible(tool.detail)}" if tool.detail else ""
        cli.out.line(f"  {escape_invisible(tool.name):<32} {tool.state}{detail}")


def _line(server: McpServer) -> str:
    offered = sum(tool.state == "offered" for tool in server.tools)
    drifted = sum(tool.state == "drift" for tool in server.tools)
    drift = f", {drifted} not as pinned" if drifted else ""
    agents = ", ".join(server.agents) or "no agent"
    return (
        f"{server.name:<20} {server.transport:<6} {server.state:<8} "
        f"{pluralize(offered, 'tool')} offered{drift}; for {agents}"
    )
