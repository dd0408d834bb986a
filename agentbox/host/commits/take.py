"""From a pending review to a branch of the operator's repository."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from agentbox.client.errors import ApiError
from agentbox.core.errors import AgentboxError
from agentbox.core.frozen import frozen
from agentbox.host.commits.download import download
from agentbox.host.commits.host_git import HostGit, repository_at
from agentbox.host.commits.quarantine import check_ref, open_quarantine
from agentbox.host.commits.sign_off import sign_off

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.review_commits import CommitsSummary

_SERVER_ERROR: Final = 500


@frozen
class TakeOptions:
    """`branch`: the name below refs/heads/agentbox. `with_rest`: with a commit of what the agent
    did not commit. `signed`: applied again, with the operator's sign-off."""

    branch: str
    with_rest: bool = False
    signed: bool = False


@frozen
class TakenBranch:
    """A new branch, and how many commits it has."""

    ref: str
    tip: str
    commits: int


def take_commits(
    client: BoxClient, summary: CommitsSummary, workspace: Path, options: TakeOptions
) -> TakenBranch:
    """Create the branch, then end the review; if the box refuses that, the branch is removed again.
    What the agent did not commit is refused unless `with_rest` takes it. Raises
    AgentboxError, ApiError."""
    rest = bool(summary.rest_count)
    if rest and not options.with_rest:
        raise AgentboxError(
            f"cannot take the commits of {summary.agent_id}: tip-differs: "
            f"{summary.rest_count} {'path' if summary.rest_count == 1 else 'paths'} not as in the "
            "last commit",
            "Add them as one more commit with --with-rest, or take the files without --commits.",
        )
    if rest and not summary.rest_tip:
        raise AgentboxError(
            f"cannot take the commits of {summary.agent_id}: tip-differs: {summary.rest_why}",
            "Take the files without commits, or export the commits.",
        )
    repository = repository_at(_repository_path(workspace, summary.directory))
    ref = check_ref(repository, options.branch)
    tip = summary.rest_tip if rest else summary.tip
    with open_quarantine(repository) as quarantine:
        bundle = quarantine.directory / "bundle"
        download(client, summary, "bundle", bundle, rest=rest)
        quarantine.receive(bundle, tip=tip, start=summary.start)
        if options.signed:
            patches = quarantine.directory / "patches"
            download(client, summary, "patches", patches, rest=rest)
            tip = sign_off(quarantine, repository, patches, tip=tip, start=summary.start)
        quarantine.deliver(ref, tip)
    _end_review(client, summary, repository, ref, tip, with_rest=rest)
    return TakenBranch(ref=ref, tip=tip, commits=summary.count + rest)


def _end_review(
    client: BoxClient,
    summary: CommitsSummary,
    repository: HostGit,
    ref: str,
    tip: str,
    *,
    with_rest: bool,
) -> None:
    body = {"digest": summary.digest, "tip": tip, "ref": ref, "with_rest": with_rest}
    try:
        client.call("end_review", {"agent_id": summary.agent_id}, body=body)
    except ApiError as error:
        if error.status < _SERVER_ERROR:  # else the review may have ended: keep the branch
            repository.run("update-ref", "-d", ref, tip)
        raise


def _repository_path(workspace: Path, directory: str) -> Path:
    path = PurePosixPath(directory)
    if path.is_absolute() or ".." in path.parts:
        raise AgentboxError(
            f"cannot take commits: no-repository: the agent worked in {directory}, which is not in "
            "the workspace",
            "Export them with `agentbox review export`.",
        )
    return workspace / path
