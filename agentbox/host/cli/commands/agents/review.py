"""`agentbox review`: changes that agents made in their copies of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.commands.agents.review_commits import (
    export_commits,
    print_diff,
    show_commits,
    take,
)
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.id_argument import id_argument
from agentbox.host.cli.output import Output, pluralize
from agentbox.host.cli.usage_text import models_line, run_line

_KINDS = ("added", "modified", "deleted")


@click.group(name="review")
def command() -> None:
    """Review changes made by agents: list, show, export, commit, discard.

    An agent works in a copy of the workspace. Its changes wait for a review, which applies or
    discards them.
    """


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List pending reviews, oldest first."""
    with cli.client() as client:
        reviews = client.call("list_reviews")["items"]
    cli.out.document(reviews)
    for review in reviews:
        cli.out.line(
            f"{review['agent_id']}  {review['sealed_at'][:19]}  "
            f"{escape_invisible(review['name'])[:40]}  {_format_counts(review)}"
        )


@command.command()
@click.option(
    "--diff/--no-diff", default=True, show_default=True, help="Show what changed in each file."
)
@click.option(
    "--commits", is_flag=True, help="Show the commits that the agent made, instead of its files."
)
@id_argument("review", "agent_id")
@click.pass_obj
def show(cli: CliContext, diff: bool, commits: bool, agent_id: str) -> None:
    """Show the changes of an agent. Files that are executed automatically come first, marked !."""
    if commits:
        show_commits(cli, agent_id, diff=diff)
        return
    position: int | None = 0
    with cli.client() as client:
        while position is not None:
            page = client.call("show_review", {"agent_id": agent_id}, query={"at": position})
            if position == 0:
                skipped = page["left_out"]
                _print_header(cli.out, page)
            for change in page["changes"]:
                cli.out.row(change)
                _print_change(cli.out, change, diff=diff)
            position = page["next"]
    cli.out.row({"summary": page["summary"], "left_out": skipped})
    cli.out.note(
        f"agentbox: apply with `agentbox review commit {agent_id}`, or `agentbox review discard "
        f"{agent_id}`"
    )


@command.command()
@click.option(
    "--digest",
    default=None,
    metavar="D",
    help="Only if the review has this digest, as shown by `show`.",
)
@click.option(
    "--commits",
    is_flag=True,
    help="Take the agent's commits as a branch of the workspace's repository, not its files.",
)
@click.option(
    "--branch",
    metavar="NAME",
    help="With --commits: create refs/heads/agentbox/NAME (default: the agent's id).",
)
@click.option(
    "--with-rest",
    is_flag=True,
    help="With --commits: add a commit of what the agent changed and did not commit.",
)
@click.option(
    "--signoff",
    is_flag=True,
    help="With --commits: apply them again as yours, with a line Signed-off-by.",
)
@id_argument("review", "agent_id")
@click.pass_obj
def commit(
    cli: CliContext,
    digest: str | None,
    commits: bool,
    branch: str | None,
    with_rest: bool,
    signoff: bool,
    agent_id: str,
) -> int:
    """Apply the changes to the workspace: all of them, or none if the workspace has changed.

    With --commits the workspace stays as it is: its repository gets a new branch.
    """
    from agentbox.client import ApiError

    if commits:
        take(cli, agent_id, digest=digest, branch=branch, with_rest=with_rest, signed=signoff)
        return ExitCode.DONE
    if branch is not None or with_rest or signoff:
        raise AgentboxError(
            "cannot commit the review: --branch, --with-rest and --signoff are for --commits",
            "Add --commits.",
            exit_code=ExitCode.USAGE,
        )
    with cli.client() as client:
        try:
            summary = client.reviews.show(agent_id, limit=1).summary
            result = client.reviews.commit(agent_id, digest or summary.digest)
        except ApiError as error:
            if error.code != "review-conflict":
                raise
            cli.out.document(error.problem)
            cli.out.error(f"agentbox: {error.message}")
            for path, reason in error.problem["conflicts"].items():
                cli.out.line(f"{escape_invisible(path)}: {escape_invisible(reason)}")
            return ExitCode.BAD
    cli.out.document(result.to_wire())
    cli.out.line(f"{pluralize(result.changed, 'file')} changed in the workspace")
    if summary.commits:
        count = pluralize(summary.commits, "commit")
        cli.out.note(f"agentbox: {count} of the agent ended with its branch: files were taken")
    return ExitCode.DONE


@command.command()
@click.option(
    "--format",
    "kind",
    type=click.Choice(["bundle", "mbox"]),
    default="bundle",
    show_default=True,
    help="A git bundle, or the patches of git format-patch.",
)
@click.option(
    "--with-rest", is_flag=True, help="Add a commit of what the agent changed and did not commit."
)
@id_argument("review", "agent_id")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(cli: CliContext, kind: str, with_rest: bool, agent_id: str, file: Path) -> None:
    """Write the agent's commits to a file, for a repository anywhere. The review stays pending."""
    export_commits(cli, agent_id, kind=kind, with_rest=with_rest, file=file)


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@id_argument("review", "agent_id")
@click.pass_obj
def discard(cli: CliContext, yes: bool, agent_id: str) -> None:
    """Permanently discard the changes (asks first)."""
    with cli.client() as client:
        summary = client.reviews.show(agent_id, limit=1).summary.to_wire()
        if not yes and not click.confirm(f"Discard {_format_counts(summary)}?", err=True):
            raise AgentboxError(
                "cannot discard the review: not confirmed", "Give --yes.", exit_code=ExitCode.USAGE
            )
        result = client.reviews.discard(agent_id)
    cli.out.document(result.to_wire())
    cli.out.line(f"discarded {result.agent_id}")


def _format_counts(summary: Mapping[str, Any]) -> str:
    parts = [f"{summary[kind]} {kind}" for kind in _KINDS if summary[kind]]
    executed = (
        f", {pluralize(summary['runs_by_itself'], 'file')} executed automatically"
        if summary["runs_by_itself"]
        else ""
    )
    commits = pluralize(summary["commits"], "commit") if summary.get("commits") else ""
    if not parts:
        return commits or "0 files"
    files = f"{pluralize(sum(summary[kind] for kind in _KINDS), 'file')} ({', '.join(parts)})"
    return f"{files}{executed}{', ' if commits else ''}{commits}"


def _print_header(out: Output, page: Mapping[str, Any]) -> None:
    summary = page["summary"]
    out.line(
        f"agent {summary['agent_id']} ({escape_invisible(summary['name'])}), "
        f"{summary['sealed_at'][:19]}"
    )
    out.line(f"digest {summary['digest']}")
    out.line(_format_counts(summary))
    if usage := run_line(summary["usage"]):
        out.line(f"used {usage}")
    if summary["models"] is not None:
        out.line(f"models {models_line(summary['models'])}")
    for skipped in page["left_out"]:
        out.line(
            f"skipped: {escape_invisible(skipped['path'])}: {escape_invisible(skipped['why'])}"
        )
    if more := summary["left_out"] - len(page["left_out"]):
        out.line(f"skipped: {more} more")


def _print_change(out: Output, change: Mapping[str, Any], *, diff: bool) -> None:
    mark = "!" if change["runs"] else " "
    notes = "; ".join([note for note in (change["runs"], *change["notes"]) if note])
    out.line(
        f"{mark} {change['what']:<8} "
        f"{escape_invisible(change['path'])}{f'  [{escape_invisible(notes)}]' if notes else ''}"
    )
    print_diff(out, change["diff"] if diff else "")
