"""`agentbox agent`: agents of the box and their grants."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.agent_output import AgentOutput
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.id_argument import id_argument
from agentbox.host.cli.usage_text import run_line

if TYPE_CHECKING:
    from agentbox.client.sync.attach import Attached
    from agentbox.contracts.orchestrator import AgentInfo

_CHUNK = 64 << 10
_STATES = (
    "starting",
    "running",
    "backoff",
    "stopping",
    "suspended",
    "exited",
    "failed",
    "lost",
)


@click.group(name="agent")
def command() -> None:
    """Manage agents of the box: list, show, spawn, stop, logs, attach, revoke."""


@command.command(name="list")
@click.option(
    "--state", type=click.Choice(_STATES), default=None, help="Only agents in this state."
)
@click.option("--name", default=None, metavar="NAME", help="Only agents with this name.")
@click.pass_obj
def list_agents(cli: CliContext, state: str | None, name: str | None) -> None:
    """List all agents, oldest first."""
    from agentbox.client import every

    with cli.client() as client:
        agents: list[AgentInfo] = list(every(client.agents.list, state=state, name=name))
    cli.out.document([_document(agent) for agent in agents])
    for agent in agents:
        spec = agent.spec
        line = (
            f"{agent.agent_id}  {agent.state:<9} {agent.generation:>3}  {spec.profile:<12} "
            f"{spec.name:<16}"
        )
        cli.out.line(
            f"{escape_invisible(line)} {escape_invisible(' '.join(spec.argv))[:60]}".rstrip()
        )


@command.command()
@id_argument("agent", "agent_id")
@click.pass_obj
def show(cli: CliContext, agent_id: str) -> None:
    """Show an agent: its state, its policy, and each grant with its id."""
    with cli.client() as client:
        _print_agent(cli, client.agents.get(agent_id))


@command.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--profile", default=None, metavar="P", help="A built-in profile, or a policy of the manifest."
)
@click.option(
    "--parent",
    default=None,
    metavar="ID",
    help="Make it a child of this agent; its grants are restricted to the parent's.",
)
@click.option(
    "--cwd", default=None, metavar="DIR", help="Directory in the box. [default: /workspace]"
)
@click.option(
    "--interactive", "-i", is_flag=True, help="Connect its standard input to a pipe, for `attach`."
)
@click.argument("name")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.pass_obj
def spawn(
    cli: CliContext,
    profile: str | None,
    parent: str | None,
    cwd: str | None,
    interactive: bool,
    name: str,
    argv: tuple[str, ...],
) -> None:
    """Start the agent NAME of the manifest, or the command CMD labelled NAME; print its id."""
    if argv and argv[0] != "--" and argv[0].startswith("-"):
        raise click.UsageError(
            f"Put {argv[0]} before {name}, or -- between them if it is the command."
        )
    cmd_argv = argv[1:] if argv[:1] == ("--",) else argv
    options: dict[str, Any] = {
        "profile": profile,
        "parent_id": parent,
        "cwd": cwd,
        "argv": list(cmd_argv) or None,
    }
    spec = {
        "name": name,
        **({} if cmd_argv else {"agent": name}),
        "stdin": "pipe" if interactive else "null",
        **{k: v for k, v in options.items() if v is not None},
    }
    with cli.client() as client:
        agent = client.agents.spawn(spec)
    cli.out.document(_document(agent))
    cli.out.line(agent.agent_id)


@command.command()
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(0, 60),
    default=None,
    metavar="S",
    help="From TERM to KILL.",
)
@id_argument("agent", "agent_id")
@click.pass_obj
def stop(cli: CliContext, grace_s: float | None, agent_id: str) -> None:
    """Stop an agent with all its processes; it is not restarted."""
    with cli.client() as client:
        agent = client.agents.get(agent_id)
        exit_status = client.agents.terminate(agent_id, agent.generation, grace_s=grace_s)
    cli.out.document(exit_status.to_wire())
    cli.out.line(f"{exit_status.reason}  {exit_status.signal or exit_status.code}")


@command.command()
@click.option("-f", "--follow", is_flag=True, help="Follow until the agent has ended.")
@id_argument("agent", "agent_id")
@click.pass_obj
def logs(cli: CliContext, follow: bool, agent_id: str) -> None:
    """Show the output of an agent that the box has stored."""
    with cli.client() as client, closing(AgentOutput()) as output:
        for item in client.agents.stream(agent_id, follow=follow):
            output.write(item.kind, item.data)


@command.command()
@id_argument("agent", "agent_id")
@click.pass_obj
def attach(cli: CliContext, agent_id: str) -> None:
    """Attach this terminal to an agent's standard input and output.

    Ctrl-D closes the input, Ctrl-C detaches.
    """
    with cli.client() as client:
        agent = client.agents.get(agent_id)
        with (
            client.agents.attach(agent_id, agent.generation) as attached,
            closing(AgentOutput()) as output,
        ):
            threading.Thread(target=_forward_stdin, args=(attached,), daemon=True).start()
            for chunk in attached:
                output.write("stdout", chunk)


@command.command()
@id_argument("agent", "agent_id")
@click.argument("grant_id")
@click.pass_obj
def revoke(cli: CliContext, agent_id: str, grant_id: str) -> int:
    """Permanently revoke a grant of an agent and all its descendants.

    Revoking a grant that the kernel enforces (fs, exec, env, a raw port) ends the agent's
    processes; its restart policy then applies.
    """
    with cli.client() as client:
        agent = client.agents.revoke(agent_id, grant_id)
    cli.out.document(_document(agent))
    for grant in _grants(agent):
        if grant["grant_id"] == grant_id:
            cli.out.line(_format_grant(grant))
    return ExitCode.DONE


def _forward_stdin(attached: Attached) -> None:
    """Forwards stdin until its end or the end of the agent."""
    from agentbox.core.errors import AgentboxError

    try:
        while data := os.read(sys.stdin.fileno(), _CHUNK):
            attached.send(data)
        attached.close_stdin()
    except AgentboxError as error:
        print(escape_invisible(f"agentbox: {error.message}"), file=sys.stderr, flush=True)


def _document(agent: AgentInfo) -> dict[str, Any]:
    wire = agent.to_wire()
    del wire["session_id"]
    return {**wire.pop("handle"), **wire}


def _print_agent(cli: CliContext, agent: AgentInfo) -> None:
    cli.out.document(_document(agent))
    policy: Mapping[str, Any] = agent.policy
    spec = agent.spec
    fields = {
        "agent": agent.agent_id,
        "name": spec.name,
        "state": agent.state,
        "generation": agent.generation,
        "command": " ".join(spec.argv),
        "profile": spec.profile,
        "parent": spec.parent_id or "",
        "provider": policy.get("provider", ""),
        "children": " ".join(policy.get("children", ())),
        "budget": _format_budget(policy.get("budget")),
        "used": _format_budget_use(agent.budget),
        "ran": run_line(agent.usage),
        "approval": " ".join(policy.get("approval_required", ())),
        "denied": " ".join(
            f"{layer}:{rule}={count}"
            for layer, rules in agent.denials.items()
            for rule, count in rules.items()
        ),
    }
    for name, value in fields.items():
        if value != "":
            cli.out.line(f"{name:<10} {escape_invisible(str(value))}")
    for grant in _grants(agent):
        cli.out.line(_format_grant(grant))


def _grants(agent: AgentInfo) -> list[Mapping[str, Any]]:
    policy: Mapping[str, Any] = agent.policy
    secrets = [{**secret, "scope": "secret"} for secret in policy.get("secrets", ())]
    return [*policy.get("grants", ()), *secrets]


def _format_grant(grant: Mapping[str, Any]) -> str:
    limits = [
        f"{name}={grant[name]}" for name in ("expires_at", "uses", "used", "rate") if name in grant
    ]
    columns = (
        grant["grant_id"],
        grant["state"],
        grant["mode"],
        grant["scope"],
        "/".join(grant["operations"]),
        *grant["patterns"],
        *limits,
    )
    return escape_invisible("  ".join(columns))


def _format_budget_use(budget: Mapping[str, Any]) -> str:
    if not budget:
        return ""
    from agentbox.policy.cost import to_decimal

    parts = [
        f"{name} {usage['used']} of {usage['cap']}, {usage['left']} left"
        for name, usage in budget.items()
        if name in ("tokens", "calls")
    ]
    money = budget.get("cost")
    if money is not None:
        cap = "no bound of its own" if money["cap"] is None else to_decimal(money["cap"])
        used, left = to_decimal(money["used"]), to_decimal(money["left"])
        parts.append(f"cost {used} of {cap}, {left} left")
    return "; ".join(
        (*parts, f"window ends {budget['resets_at'] or 'a while after the next call'}")
    )


def _format_budget(budget: Mapping[str, Any] | None) -> str:
    if not budget:
        return ""
    from agentbox.policy.cost import to_decimal

    money = budget.get("max_cost")
    shown = {**budget, "max_cost": None if money is None else to_decimal(money)}
    return " ".join(f"{name}={value}" for name, value in shown.items() if value is not None)
