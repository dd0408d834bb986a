"""`agentbox acp`: the box as an agent for editors."""

from __future__ import annotations

from pathlib import Path

import click

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext

_CLIENTS = ("zed", "jetbrains", "acpx")  # of client_settings


@click.group(name="acp", invoke_without_command=True)
@click.option(
    "--agent",
    default="",
    metavar="NAME",
    help='Table in [agents] with protocol = "acp". [default: the only one]',
)
@click.option(
    "--session",
    default="",
    metavar="NAME",
    help="Work in the session of this name; it is opened if there is none.",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    metavar="DIR",
    help="Folder of this machine that is the box's workspace. [default: the mounted one]",
)
@click.pass_context
def command(ctx: click.Context, agent: str, session: str, project: Path | None) -> None:
    """Serve the box as an agent of the Agent Client Protocol (ACP), for editors.

    Without a subcommand it speaks the protocol on stdin and stdout: an editor starts it. Each
    session of the editor is an agent in a box of its own; its changes wait for a review.
    """
    if ctx.invoked_subcommand is not None:
        return
    import asyncio

    from agentbox.host.acp.bridge import serve
    from agentbox.host.acp.project_paths import ProjectPaths

    cli: CliContext = ctx.obj
    folder = project or cli.workspace_directory()
    if folder is None:
        raise AgentboxError(
            "cannot translate paths: the box's workspace is not a folder of this machine",
            "Name the folder that has the same files: `agentbox acp --project DIR`.",
        )

    def locate() -> tuple[str, str]:
        record = cli.running_record()
        return record.api_url, cli.token(record)

    query = {name: value for name, value in (("agent", agent), ("session", session)) if value}
    asyncio.run(serve(locate, query, ProjectPaths(folder)))


@command.command()
@click.argument("client", type=click.Choice(_CLIENTS))
@click.pass_obj
def config(cli: CliContext, client: str) -> None:
    """Print the entry for an editor's settings, and name the file on stderr."""
    from agentbox.host.acp.client_settings import client_entry

    words = [str(CHECKOUT / "agentbox.sh"), "--manifest", str(cli.manifest.resolve()), "acp"]
    file, text = client_entry(client, words)
    cli.out.document({"file": file, "entry": text})
    cli.out.note(f"add this to {file}:")
    cli.out.raw(text.rstrip("\n"))
