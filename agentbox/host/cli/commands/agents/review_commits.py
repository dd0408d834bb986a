"""`agentbox review --commits`: shows, exports and takes the commits of an agent. All of their text
is the agent's: `Output` escapes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import Output, pluralize

if TYPE_CHECKING:
    from agentbox.contracts.review_commits import CommitsSummary

_COLORS: Final = {"+": "32", "-": "31", "@": "36"}
_KINDS: Final = {"bundle": "bundle", "mbox": "patches"}
_SHORT_ID: Final = 12


def show_commits(cli: CliContext, agent_id: str, *, diff: bool) -> None:
    """Print every commit, oldest first, and what is left out."""
    position: int | None = 0
    with cli.client() as client:
        while position is not None:
            page = client.call(
                "show_review_commits", {"agent_id": agent_id}, query={"at": position}
            )
            if position == 0:
                _print_header(cli.out, page["summary"])
            for part in page["commits"]:
                cli.out.row(part)
                _print_part(cli.out, part, diff=diff)
            position = page["next"]
    cli.out.row({"summary": page["summary"]})
    if page["summary"]["count"]:
        cli.out.note(
            f"agentbox: take them with `agentbox review commit --commits {agent_id}`, or "
            f"`agentbox review export {agent_id} FILE`"
        )


def export_commits(
    cli: CliContext, agent_id: str, *, kind: str, with_rest: bool, file: Path
) -> None:
    """Write the bundle or the patches."""
    from agentbox.host.commits.download import download

    with cli.client() as client:
        summary = client.reviews.commits(agent_id, limit=1).summary
        size = download(client, summary, _KINDS[kind], file, rest=with_rest)
    name = f"rest-{_KINDS[kind]}" if with_rest else _KINDS[kind]
    sha256 = summary.files[name].sha256
    tip = summary.rest_tip if with_rest else summary.tip
    cli.out.document({"file": str(file), "size": size, "sha256": sha256, "tip": tip})
    cli.out.line(f"{file}: {pluralize(summary.count + with_rest, 'commit')}, {size} bytes")
    if summary.rest_count and not with_rest:
        _print_rest(cli.out, summary.to_wire())


def take(
    cli: CliContext,
    agent_id: str,
    *,
    digest: str | None,
    branch: str | None,
    with_rest: bool,
    signed: bool,
) -> None:
    """Create the branch on this host and end the review."""
    from agentbox.host.commits.take import TakeOptions, take_commits

    workspace = cli.workspace_directory()
    if workspace is None:
        raise AgentboxError(
            f"cannot take the commits of {agent_id}: the workspace is not a directory of this host",
            f"Export them: agentbox review export {agent_id} FILE; then `git fetch FILE` in your "
            "repository, and discard the review.",
        )
    options = TakeOptions(branch=branch or agent_id, with_rest=with_rest, signed=signed)
    with cli.client() as client:
        summary = client.reviews.commits(agent_id, limit=1).summary
        _check(cli.out, summary, digest, with_rest=with_rest)
        taken = take_commits(client, summary, workspace, options)
    cli.out.document({"ref": taken.ref, "tip": taken.tip, "commits": taken.commits})
    cli.out.line(f"{pluralize(taken.commits, 'commit')} in {taken.ref} ({taken.tip[:_SHORT_ID]})")
    cli.out.note(f"agentbox: git log ..{taken.ref.removeprefix('refs/heads/')}")


def _check(out: Output, summary: CommitsSummary, digest: str | None, *, with_rest: bool) -> None:
    subject = f"cannot take the commits of {summary.agent_id}"
    if digest is not None and digest != summary.digest:
        raise AgentboxError(f"{subject}: its digest is {summary.digest}", "Show the review again.")
    if not summary.count:
        raise AgentboxError(
            f"{subject}: it made none",
            "Take the files: `agentbox review commit`, without --commits.",
        )
    if summary.rest_count and not with_rest:
        _print_rest(out, summary.to_wire())  # `take_commits` refuses it


def _print_header(out: Output, summary: Mapping[str, Any]) -> None:
    out.line(f"agent {summary['agent_id']} ({summary['name']})")
    out.line(f"digest {summary['digest']}")
    marked = summary["runs_by_itself"]
    executed = f", {pluralize(marked, 'path')} executed automatically" if marked else ""
    start = summary["start"][:_SHORT_ID] or "the beginning"
    branch = f" on {summary['ref']}" if summary["ref"] else ""
    out.line(f"{pluralize(summary['count'], 'commit')} since {start}{branch}{executed}")
    for item in summary["left_out"]:
        out.line(f"left out: {escape_invisible(item['path'])}: {item['why']}")
    if summary["patches_why"]:
        out.line(f"no patches: {summary['patches_why']}")
    _print_rest(out, summary)


def _print_rest(out: Output, summary: Mapping[str, Any]) -> None:
    for item in summary["rest"]:
        out.line(f"not committed: {escape_invisible(item['path'])}: {item['why']}")
    if more := summary["rest_count"] - len(summary["rest"]):
        out.line(f"not committed: {more} more")
    if summary["rest_why"]:
        out.line(f"--with-rest is not possible: {summary['rest_why']}")
    if summary["ignored"]:
        out.line(f"not committed: {pluralize(summary['ignored'], 'file')} that git ignores")


def _print_part(out: Output, part: Mapping[str, Any], *, diff: bool) -> None:
    if part["part"] == 0:
        out.line()
        out.line(f"commit {part['id']}")
        if len(part["parents"]) > 1:
            out.line(f"merge of {' '.join(one[:_SHORT_ID] for one in part['parents'])}")
        out.line(f"author {part['author']}, {part['author_date']}")
        if part["committer"] != part["author"]:
            out.line(f"committer {part['committer']}, {part['committer_date']}")
        for line in part["message"].rstrip("\n").split("\n"):
            out.line(f"    {line}".rstrip())
    for file in part["files"]:
        _print_file(out, file, diff=diff)


def _print_file(out: Output, file: Mapping[str, Any], *, diff: bool) -> None:
    notes = "; ".join(note for note in (file["runs"], *file["notes"]) if note)
    mark, remark = "!" if file["runs"] else " ", f"  [{notes}]" if notes else ""
    out.line(f"{mark} {file['what']:<8} {escape_invisible(file['path'])}{remark}")
    print_diff(out, file["diff"] if diff else "")


def print_diff(out: Output, text: str) -> None:
    """The lines of a diff, in colours on a terminal."""
    for line in text.removesuffix("\n").split("\n"):  # no other character ends a line of a diff
        shown = escape_invisible(line, tabs=True)
        color = _COLORS.get(line[:1])
        out.raw(
            f"    \x1b[{color}m{shown}\x1b[0m"
            if color and out.color and out.redrawable
            else f"    {shown}"
        )
