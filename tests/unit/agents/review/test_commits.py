"""Commits of honest agents, in every kind of repository that a workspace can be."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from commit_lab import CommitLab, commit, git

from agentbox.agents.review.commits.confined import main
from agentbox.agents.review.commits.confined.listing import PART_FILES
from agentbox.core.slot_errors import HistoryLeftOut
from agentbox.sandbox.launcher.client import LauncherClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def launcher() -> AsyncIterator[LauncherClient]:
    made = LauncherClient()
    yield made
    await made.close()


def repository(directory: Path, *options: str) -> Path:
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main", *options)
    return directory


def unpacked(bundle: Path, workspace: Path, at: Path) -> str:
    """The tip of a bundle, in a clone of the workspace that is checked by git."""
    git(workspace.parent, "clone", "-q", "--no-local", str(workspace), str(at))
    git(at, "fetch", "-q", str(bundle), "refs/heads/agentbox/*:refs/taken/*")
    git(at, "fsck", "--strict", "--no-dangling")
    return git(at, "for-each-ref", "--format=%(objectname)", "refs/taken")


@pytest.mark.parametrize("kind", ["packed", "sha256", "unborn", "detached", "shallow", "rewound"])
async def test_kinds_of_repositories(kind: str, launcher: LauncherClient, tmp_path: Path) -> None:
    """Each is shown completely, and its bundle completes a clone of the workspace."""
    workspace = tmp_path / "workspace"
    if kind == "shallow":
        full = repository(tmp_path / "full")
        commit(full, "far", file="far\n")
        commit(full, "near", file="near\n")
        git(tmp_path, "clone", "-q", "--depth=1", f"file://{full}", str(workspace))
    else:
        repository(workspace, *(["--object-format=sha256"] if kind == "sha256" else []))
    if kind not in ("unborn", "shallow"):
        commit(workspace, "first", file="first\n")
        commit(workspace, "start", file="start\n")
    lab = CommitLab(tmp_path, launcher, workspace)
    agent_id, work = lab.begin()
    if kind == "detached":
        git(work, "checkout", "-q", "--detach")
    if kind == "rewound":
        git(work, "reset", "-q", "--hard", "HEAD~1")
    commit(work, "one", file="1\n", other="x\n")
    tip = commit(work, "two", file="2\n")
    if kind == "packed":
        git(work, "gc", "-q", "--prune=now")
        assert not (work / ".git/refs/heads/main").exists()
    page = await lab.page(agent_id)
    summary = page["summary"]
    assert [one["message"] for one in page["commits"]] == ["one\n", "two\n"]
    assert (summary["tip"], summary["rest"], summary["left_out"]) == (tip, [], [])
    assert summary["ref"] == ("" if kind == "detached" else "refs/heads/main")
    assert (lab.made(agent_id) / "patches").read_bytes().count(b"\nSubject: [PATCH ") == 2
    if kind == "unborn":
        assert summary["start"] == ""
    else:
        assert unpacked(lab.made(agent_id) / "bundle", workspace, tmp_path / "clone") == tip


async def test_a_review_of_commits_alone(launcher: LauncherClient, tmp_path: Path) -> None:
    """An agent that took its change back has changed no file; its commits can be seen and taken."""
    lab = CommitLab(tmp_path, launcher)
    agent_id, work = lab.begin()
    commit(work, "one", file="1\n")
    commit(work, "back", file="one\n")
    page = await lab.page(agent_id)
    assert page["summary"]["count"] == 2
    (summary,) = lab.reviews.page()
    assert (summary["modified"], summary["commits"]) == (0, 2)
    await lab.reviews.discard(agent_id, "x")
    assert not (lab.paths.branches / agent_id).exists()


async def test_dirty_at_the_start(launcher: LauncherClient, tmp_path: Path) -> None:
    """What the operator had not committed is no change of the agent, unless it changes it."""
    lab = CommitLab(tmp_path, launcher)
    commit(lab.workspace, "more", mine="1\n", yours="1\n")
    (lab.workspace / "mine").write_text("operator\n")
    (lab.workspace / "yours").write_text("operator\n")
    (lab.workspace / "untracked").write_text("operator\n")
    agent_id, work = lab.begin()
    (work / "yours").write_text("agent\n")
    (work / "file").write_text("agent\n")
    git(work, "commit", "-q", "-m", "x", "file")
    page = await lab.page(agent_id)
    assert page["summary"]["rest"] == [{"path": "yours", "why": "modified"}]


async def test_line_breaks_that_git_converts(launcher: LauncherClient, tmp_path: Path) -> None:
    """git-config(1), core.autocrlf: the file has other bytes than its commit, and nothing is left
    to commit."""
    lab = CommitLab(tmp_path, launcher)
    git(lab.workspace, "config", "core.autocrlf", "true")
    agent_id, work = lab.begin()
    (work / "file").write_bytes(b"one\r\ntwo\r\n")
    git(work, "commit", "-q", "-a", "-m", "x")
    page = await lab.page(agent_id)
    assert "+two\n" in page["commits"][0]["files"][0]["diff"]
    assert page["summary"]["rest"] == []


async def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what is missing, and where."""
    monkeypatch.setattr(main, "SEARCH_PATH", str(tmp_path))
    (tmp_path / "out").mkdir()
    (tmp_path / "input.json").write_text("{}")
    assert main.main(tmp_path) == 0
    result = json.loads((tmp_path / "out" / main.RESULT).read_text())
    assert result == {
        "error": "history-left-out",
        "detail": "git is not installed where agents run (/usr/bin/git)",
    }


async def test_pages_of_a_large_commit(launcher: LauncherClient, tmp_path: Path) -> None:
    """More files than fit into one part: each is shown once, those that run by themselves first."""
    lab = CommitLab(tmp_path, launcher)
    agent_id, work = lab.begin()
    names = {f"f{number}": "x\n" for number in range(PART_FILES + 10)}
    commit(work, "many", **names, Makefile="all:\n")
    await lab.reviews.load(frozenset())
    parts, at = [], 0
    while at is not None:
        page = await lab.reviews.commits.show(agent_id, at, 1)
        parts += page["commits"]
        at = page["next"]
    assert [(one["index"], one["part"], one["more"]) for one in parts] == [
        (0, 0, True),
        (0, 1, False),
    ]
    assert [one["message"] for one in parts] == ["many\n", ""]
    paths = [file["path"] for one in parts for file in one["files"]]
    assert paths[0] == "Makefile"
    assert sorted(paths) == sorted(["Makefile", *names])


async def test_files_are_read_in_pieces(launcher: LauncherClient, tmp_path: Path) -> None:
    """Each with the hash and size of the whole; what there is not is an error that says why."""
    lab = CommitLab(tmp_path, launcher)
    agent_id, work = lab.begin()
    commit(work, "one", file="1\n")
    await lab.page(agent_id)
    whole = (lab.made(agent_id) / "bundle").read_bytes()
    pieces = [await lab.reviews.commits.read(agent_id, "bundle", at, 100) for at in (0, 100)]
    assert [base64.b64decode(one["data"]) for one in pieces] == [whole[:100], whole[100:200]]
    assert {one["size"] for one in pieces} == {len(whole)}
    with pytest.raises(HistoryLeftOut, match="the last commit has all changes"):
        await lab.reviews.commits.read(agent_id, "rest-bundle", 0, 100)


async def test_what_was_made_is_covered_by_the_digest(
    launcher: LauncherClient, tmp_path: Path
) -> None:
    """Another bundle is another review: a stored one that was altered is refused."""
    lab = CommitLab(tmp_path, launcher)
    agent_id, work = lab.begin()
    commit(work, "one", file="1\n")
    page = await lab.page(agent_id)
    stored = tmp_path / "reviews" / agent_id / "review.json"
    sha256 = page["summary"]["files"]["bundle"]["sha256"]
    stored.write_text(stored.read_text().replace(sha256, "0" * 64))
    with pytest.raises(Exception, match="has changed since it was sealed"):
        await lab.reviews.commits.show(agent_id, 0, 1)
