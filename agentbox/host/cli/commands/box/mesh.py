"""`agentbox mesh`: this box's part in a federation."""

from __future__ import annotations

import click

from agentbox.host.cli.context import Cli


@click.group(name="mesh")
def command() -> None:
    """This box's part in a federation: a host keeps sessions, a client has one."""


@command.command()
@click.pass_obj
def status(cli: Cli) -> None:
    """Say the mode, and of a client its state, its host and what it was given; of a host its sessions."""
    with cli.client() as client:
        found = client.call("mesh_status")
        readable = found["mode"] == "host" and found["state"] != "down"
        rows = client.call("mesh_sessions", query={"state": "active"})["items"] if readable else []
    cli.out.document({**found, "active": rows} if found["mode"] == "host" else found)
    cli.out.line(f"{found['mode']}: {found['state']}" + (f" ({found['reason']})" if found["reason"] else ""))
    if found["host"]:
        cli.out.line(f"host {found['host']}, session {found['session_id'] or 'none'}, instance {found['instance_id']}")
    for slot, given in found["slots"].items():
        cli.out.line(f"{slot}  {given}")
    for row in rows:
        cli.out.line(f"{row['id']}  instance {row['instance_id']}  last beat {row['last_beat_at'] or 'none yet'}")


@command.command()
@click.pass_obj
def join(cli: Cli) -> None:
    """Ask the host again now: after a refusal a box waits 10 minutes by itself."""
    with cli.client() as client:
        found = client.call("mesh_join")
    cli.out.document(found)
    cli.out.line(f"{found['mode']}: {found['state']}")


@command.group()
def outbox() -> None:
    """Results that wait for the store of beads."""


@outbox.command(name="list")
@click.pass_obj
def list_(cli: Cli) -> None:
    """List them, the oldest first."""
    with cli.client() as client:
        items = client.call("mesh_outbox")["items"]
    cli.out.document(items)
    for item in items:
        cli.out.line(f"{item['id']}  {item['op']}  {item['bead_id']}  {item['outcome']}  {item['created_at']}")


@outbox.command()
@click.argument("id")
@click.pass_obj
def drop(cli: Cli, id: str) -> None:
    """Give one up by its id: it is never sent. The journal keeps its digest."""
    with cli.client() as client:
        client.call("mesh_drop", {"id": id})
    cli.out.document({"dropped": id})
    cli.out.line(f"dropped {id}")
