"""`agentbox state`: whose memory and pods runs use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agentbox.core import clock
from agentbox.core.visible import visible
from agentbox.host.cli.context import Cli
from agentbox.host.cli.output import counted


@click.group(name="state")
def command() -> None:
    """Memory and pods of runs: list, show, reset, prune, adopt.

    Each run has a state of its own, kept for state.keep_days after its end. Runs share one by its name (`run --name N`), and
    runs of an agent where its table says state = "shared" (agents.NAME).
    """


@command.command(name="list")
@click.option("--legacy", is_flag=True, help="Instead, what agents left before states were a run's own.")
@click.pass_obj
def list_(cli: Cli, legacy: bool) -> None:
    """Every state, oldest first, and the agents that use it now."""
    from agentbox.client import every

    with cli.client() as client:
        found = client.states.list(legacy=True)[0] if legacy else list(every(client.states.list))
    cli.out.document([dict(one) for one in found])
    for one in found:
        cli.out.line(visible(one["name"]) if legacy else _line(one))


@command.command()
@click.argument("name")
@click.pass_obj
def show(cli: Cli, name: str) -> None:
    """One state by NAME or id, and how much it holds."""
    with cli.client() as client:
        found = client.states.get(name)
    cli.out.document(dict(found))
    cli.out.line(_line(found))
    cli.out.line(f"holds {_holds(found['holds'])}; made by {visible(found['owner'])}")
    for agent_id in found["agents"]:
        cli.out.line(f"used by {agent_id}")


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("name")
@click.pass_obj
def reset(cli: Cli, yes: bool, name: str) -> None:
    """Remove all that the state NAME (or id) holds, and the name (asks first). Refused while a run of it lives."""
    with cli.client() as client:
        if not yes:
            held = _holds(client.states.get(name)["holds"])
            click.confirm(f"Remove {held} of {visible(name)}, for good?", abort=True, err=True)
        gone = client.states.remove(name)
    cli.out.document(dict(gone))
    cli.out.line(f"removed {_holds(gone)}")


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(cli: Cli, yes: bool) -> None:
    """Remove the states of all runs that have ended, before state.keep_days (asks first). States with a name stay."""
    from agentbox.client import ApiError, every

    with cli.client() as client:
        over = [one for one in every(client.states.list) if one["name"] is None and not one["agents"]]
        if over and not yes:
            click.confirm(f"Remove {counted(len(over), 'state')} of runs, for good?", abort=True, err=True)
        rows: list[Mapping[str, Any]] = []
        for one in over:
            try:
                rows.append({"state_id": one["state_id"], **client.states.remove(one["state_id"])})
            except ApiError as error:
                if error.code not in ("state-busy", "not-found"):  # used again, or removed meanwhile
                    raise
    cli.out.document([dict(row) for row in rows])
    memory, pods = (sum(row[kind] for row in rows) for kind in ("memory", "pods"))
    cli.out.line(f"removed {counted(len(rows), 'state')} with {_holds({'memory': memory, 'pods': pods})}")


@command.command()
@click.option("--name", default="", metavar="N", help="The new state, for `run --name N`.")
@click.option("--agent", default="", metavar="A", help="Instead, the state that the runs of this agent share.")
@click.argument("source", metavar="legacy.AGENT")
@click.pass_obj
def adopt(cli: Cli, name: str, agent: str, source: str) -> None:
    """Take over what an agent left under its name before states were a run's own."""
    if bool(name) == bool(agent):
        raise click.UsageError("Say what it becomes: either --name N or --agent A.")
    with cli.client() as client:
        found = client.states.adopt(source, name or f"agents.{agent}")
    cli.out.document(dict(found))
    cli.out.line(f"{visible(source)} is {visible(found['name'])} now: {_holds(found['holds'])}")


def _line(state: Mapping[str, Any]) -> str:
    used, name = clock.to_wire(clock.at(state["used"]))[:19], state["name"] or "-"
    lives = f"  {counted(len(state['agents']), 'agent')}" if state["agents"] else ""
    return f"{state['state_id']}  {used}  {visible(name):<24} {visible(state['label'])[:40]}{lives}"


def _holds(holds: Mapping[str, Any]) -> str:
    return f"{counted(holds['memory'], 'memory item')} and {counted(holds['pods'], 'pod')}"
