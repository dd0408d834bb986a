"""`agentbox state`: memory and pods of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agentbox.core import clock
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from agentbox.contracts.states import State, StateHolds


@click.group(name="state")
def command() -> None:
    """Manage memory and pods of runs: list, show, reset, prune, adopt.

    Each run has its own state, kept for state.keep_days after its end. Runs can share a named state
    (`run --name N`), as do runs of an agent with state = "shared" (agents.NAME).
    """


@command.command(name="list")
@click.option(
    "--legacy",
    is_flag=True,
    help="Instead, list data of agents from before each run had its own state.",
)
@click.pass_obj
def list_(cli: CliContext, legacy: bool) -> None:
    """List all states, oldest first, with the agents that use them."""
    from agentbox.client import every

    with cli.client() as client:
        if legacy:
            names = client.states.list(legacy=True).legacy
            cli.out.document([{"name": name} for name in names])
            lines = [escape_invisible(name) for name in names]
        else:
            states = list(every(client.states.list))
            cli.out.document([state.to_wire() for state in states])
            lines = [_format_state(state) for state in states]
    for line in lines:
        cli.out.line(line)


@command.command()
@click.argument("name")
@click.pass_obj
def show(cli: CliContext, name: str) -> None:
    """Show a state by NAME or id, and its size."""
    with cli.client() as client:
        state = client.states.show(name)
    cli.out.document(state.to_wire())
    cli.out.line(_format_state(state))
    cli.out.line(
        f"holds {_format_contents(state.holds)}; created by {escape_invisible(state.owner)}"
    )
    for agent_id in state.agents:
        cli.out.line(f"used by {agent_id}")


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("name")
@click.pass_obj
def reset(cli: CliContext, yes: bool, name: str) -> None:
    """Remove the contents and the name of the state NAME or id (asks first).

    Fails while a run uses it.
    """
    with cli.client() as client:
        if not yes:
            contents = _format_contents(client.states.show(name).holds)
            click.confirm(
                f"Remove {contents} of {escape_invisible(name)} permanently?", abort=True, err=True
            )
        removed = client.states.remove(name)
    cli.out.document(removed.to_wire())
    cli.out.line(f"removed {_format_contents(removed)}")


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(cli: CliContext, yes: bool) -> None:
    """Remove the states of all ended runs before state.keep_days (asks first).

    Named states are kept.
    """
    from agentbox.client import ApiError, every

    with cli.client() as client:
        ended = [
            state for state in every(client.states.list) if state.name is None and not state.agents
        ]
        if ended and not yes:
            click.confirm(
                f"Remove {pluralize(len(ended), 'state')} of runs permanently?",
                abort=True,
                err=True,
            )
        removed: list[dict[str, Any]] = []
        for state in ended:
            try:
                contents = client.states.remove(state.state_id)
                removed.append({"state_id": state.state_id, **contents.to_wire()})
            except ApiError as error:
                if error.code not in (
                    "state-busy",
                    "not-found",
                ):  # in use again, or removed meanwhile
                    raise
    cli.out.document(removed)
    memory, pods = (sum(row[kind] for row in removed) for kind in ("memory", "pods"))
    cli.out.line(f"removed {pluralize(len(removed), 'state')} with {_format_counts(memory, pods)}")


@command.command()
@click.option("--name", default="", metavar="N", help="The new state, for `run --name N`.")
@click.option("--agent", default="", metavar="A", help="Instead, the shared state of this agent.")
@click.argument("source", metavar="legacy.AGENT")
@click.pass_obj
def adopt(cli: CliContext, name: str, agent: str, source: str) -> None:
    """Adopt the data that an agent stored before each run had its own state."""
    if bool(name) == bool(agent):
        raise click.UsageError("Give either --name N or --agent A.")
    with cli.client() as client:
        state = client.states.adopt(source, name or f"agents.{agent}")
    cli.out.document(state.to_wire())
    cli.out.line(
        f"{escape_invisible(source)} is {escape_invisible(state.name or '')} now: "
        f"{_format_contents(state.holds)}"
    )


def _format_state(state: State) -> str:
    last_used, name = clock.to_wire(clock.from_unix(state.used))[:19], state.name or "-"
    agents = f"  {pluralize(len(state.agents), 'agent')}" if state.agents else ""
    return (
        f"{state.state_id}  {last_used}  {escape_invisible(name):<24} "
        f"{escape_invisible(state.label)[:40]}{agents}"
    )


def _format_contents(contents: StateHolds | None) -> str:
    """Of a single state, which has them."""
    assert contents is not None
    return _format_counts(contents.memory, contents.pods)


def _format_counts(memory: int, pods: int) -> str:
    return f"{pluralize(memory, 'memory item')} and {pluralize(pods, 'pod')}"
