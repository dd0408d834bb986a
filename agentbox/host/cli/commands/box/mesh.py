"""`agentbox mesh`: the role of this box in a federation."""

from __future__ import annotations

import click

from agentbox.host.cli.context import CliContext


@click.group(name="mesh")
def command() -> None:
    """Manage the federation: a host serves sessions, a client has one."""


@command.command()
@click.pass_obj
def status(cli: CliContext) -> None:
    """Show the mode; of a client its state, host and slots, of a host its sessions."""
    with cli.client() as client:
        mesh_status = client.call("mesh_status")
        readable = mesh_status["mode"] == "host" and mesh_status["state"] != "down"
        sessions = (
            client.call("mesh_sessions", query={"state": "active"})["items"] if readable else []
        )
    cli.out.document(
        {**mesh_status, "active": sessions} if mesh_status["mode"] == "host" else mesh_status
    )
    cli.out.line(
        f"{mesh_status['mode']}: {mesh_status['state']}"
        + (f" ({mesh_status['reason']})" if mesh_status["reason"] else "")
    )
    if mesh_status["host"]:
        cli.out.line(
            f"host {mesh_status['host']}, session {mesh_status['session_id'] or 'none'}, instance "
            f"{mesh_status['instance_id']}"
        )
    for slot, assigned in mesh_status["slots"].items():
        cli.out.line(f"{slot}  {assigned}")
    for session in sessions:
        cli.out.line(
            f"{session['id']}  instance {session['instance_id']}  last beat "
            f"{session['last_beat_at'] or 'none yet'}"
        )


@command.command()
@click.pass_obj
def join(cli: CliContext) -> None:
    """Retry to join the host now; after a refusal a box waits 10 minutes on its own."""
    with cli.client() as client:
        mesh_status = client.call("mesh_join")
    cli.out.document(mesh_status)
    cli.out.line(f"{mesh_status['mode']}: {mesh_status['state']}")


@command.group()
def outbox() -> None:
    """Results that wait for delivery to the bead store."""


@outbox.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List the results, oldest first."""
    with cli.client() as client:
        items = client.call("mesh_outbox")["items"]
    cli.out.document(items)
    for item in items:
        cli.out.line(
            f"{item['id']}  {item['op']}  {item['bead_id']}  {item['outcome']}  "
            f"{item['created_at']}"
        )


@outbox.command()
@click.argument("id")
@click.pass_obj
def drop(cli: CliContext, id: str) -> None:
    """Drop a result by its id: it is never sent. The journal keeps its digest."""
    with cli.client() as client:
        client.call("mesh_drop", {"id": id})
    cli.out.document({"dropped": id})
    cli.out.line(f"dropped {id}")
