"""`agentbox review`: what agents changed in their copies of the workspace, and the decision on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible import visible
from agentbox.host.cli.context import Cli
from agentbox.host.cli.output import Output, counted

_COLORS = {"+": "32", "-": "31", "@": "36"}
_KINDS = ("added", "modified", "deleted")


@click.group(name="review")
def command() -> None:
    """What agents changed: list, show, commit, discard.

    An agent works in a copy of the workspace. What it changed there waits here until it is taken over or thrown away.
    """


@command.command(name="list")
@click.pass_obj
def list_(cli: Cli) -> None:
    """Changes that wait for a decision, oldest first."""
    with cli.client() as client:
        found = client.reviews.list()
    cli.out.document(list(found))
    for one in found:
        cli.out.line(f"{one['agent_id']}  {one['sealed_at'][:19]}  {visible(one['name'])[:40]}  {_counts(one)}")


@command.command()
@click.option("--diff/--no-diff", default=True, show_default=True, help="Show what changed in each file.")
@click.argument("agent_id")
@click.pass_obj
def show(cli: Cli, diff: bool, agent_id: str) -> None:
    """The changes of one agent. What runs by itself where it lands comes first, marked with !."""
    at: int | None = 0
    with cli.client() as client:
        while at is not None:
            page = client.reviews.show(agent_id, at=at)
            if at == 0:
                left_out = page["left_out"]
                _head(cli.out, page)
            for change in page["changes"]:
                cli.out.row(change)
                _show(cli.out, change, diff=diff)
            at = page["next"]
    cli.out.row({"summary": page["summary"], "left_out": left_out})
    cli.out.note(f"agentbox: take it with `agentbox review commit {agent_id}`, or `agentbox review discard {agent_id}`")


@command.command()
@click.option("--digest", default=None, metavar="D", help="Only if it is the one with this digest, as `show` said.")
@click.argument("agent_id")
@click.pass_obj
def commit(cli: Cli, digest: str | None, agent_id: str) -> int:
    """Take the changes over into the workspace: all of them, or none where the workspace has changed."""
    from agentbox.client import ApiError

    with cli.client() as client:
        try:
            done = client.reviews.commit(
                agent_id, digest or client.reviews.show(agent_id, limit=1)["summary"]["digest"]
            )
        except ApiError as error:
            if error.code != "review-conflict":
                raise
            cli.out.document(error.problem)
            cli.out.error(f"agentbox: {error.message}")
            for path, why in error.problem["conflicts"].items():
                cli.out.line(f"{visible(path)}: {visible(why)}")
            return ExitCode.BAD
    cli.out.document(done)
    cli.out.line(f"{counted(done['changed'], 'file')} changed in the workspace")
    return ExitCode.DONE


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("agent_id")
@click.pass_obj
def discard(cli: Cli, yes: bool, agent_id: str) -> None:
    """Throw the changes away, for good (asks first)."""
    with cli.client() as client:
        summary = client.reviews.show(agent_id, limit=1)["summary"]
        if not yes and not click.confirm(f"Throw away {_counts(summary)}?", err=True):
            raise AgentboxError("cannot discard the review: nobody said yes", "Say --yes.", exit_code=ExitCode.USAGE)
        done = client.reviews.discard(agent_id)
    cli.out.document(done)
    cli.out.line(f"discarded {done['agent_id']}")


def _counts(one: Mapping[str, Any]) -> str:
    parts = [f"{one[what]} {what}" for what in _KINDS if one[what]]
    runs = f", {counted(one['runs_by_itself'], 'file')} that something runs by itself" if one["runs_by_itself"] else ""
    return f"{counted(sum(one[what] for what in _KINDS), 'file')} ({', '.join(parts)}){runs}"


def _head(out: Output, page: Mapping[str, Any]) -> None:
    summary = page["summary"]
    out.line(f"agent {summary['agent_id']} ({visible(summary['name'])}), {summary['sealed_at'][:19]}")
    out.line(f"digest {summary['digest']}")
    out.line(_counts(summary))
    for one in page["left_out"]:
        out.line(f"not taken: {visible(one['path'])}: {visible(one['why'])}")
    if more := summary["left_out"] - len(page["left_out"]):
        out.line(f"not taken: {more} more")


def _show(out: Output, change: Mapping[str, Any], *, diff: bool) -> None:
    mark = "!" if change["runs"] else " "
    said = "; ".join([one for one in (change["runs"], *change["notes"]) if one])
    out.line(f"{mark} {change['what']:<8} {visible(change['path'])}{f'  [{visible(said)}]' if said else ''}")
    for line in change["diff"].splitlines() if diff else ():
        text = visible(line, tabs=True)
        color = _COLORS.get(line[:1])
        out.raw(f"    \x1b[{color}m{text}\x1b[0m" if color and out.color and out.redrawable else f"    {text}")
