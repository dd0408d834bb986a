"""Repositories that lead elsewhere: by alternates, links, files and names of refs."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from commit_lab import CommitLab, commit, git

from agentbox.core.slot_errors import HistoryLeftOut, RefRefused

Branch = tuple[str, Path]
pytestmark = pytest.mark.asyncio(loop_scope="module")
EXPECTED = {"listing", "bundle", "patches", "result.json"}


def messages(page: dict[str, Any]) -> list[str]:
    return [one["message"].strip() for one in page["commits"]]


def left_out(page: dict[str, Any]) -> dict[str, str]:
    return {one["path"]: one["why"] for one in page["summary"]["left_out"]}


@pytest.mark.parametrize("place", ["other", "relative"])
async def test_alternates_that_lead_elsewhere(
    lab: CommitLab, branch: Branch, place: str, tmp_path: Path
) -> None:
    """gitrepository-layout(5): objects of a repository that is not the agent's."""
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    secret = commit(other, "secret", secret="secret\n")
    agent_id, work = branch
    commit(work, "own", file="own\n")
    objects = other / ".git/objects"
    text = str(objects) if place == "other" else os.path.relpath(objects, work / ".git/objects")
    with (work / ".git/objects/info/alternates").open("a") as alternates:
        alternates.write(f"{text}\n")
    git(work, "update-ref", "refs/heads/main", secret)
    assert git(work, "log", "--format=%s") == "secret"
    error = await lab.failure(agent_id)
    assert isinstance(error, HistoryLeftOut)
    assert "objects/info/alternates names other objects" in error.message


@pytest.mark.parametrize("name", [".git", ".git/objects", ".git/objects/pack", ".git/HEAD"])
async def test_links_in_place_of_its_parts(
    lab: CommitLab, branch: Branch, name: str, tmp_path: Path
) -> None:
    """Another repository, or a part of it, by a link: nothing of it is read."""
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    commit(other, "secret", secret="secret\n")
    git(other, "repack", "-a", "-d", "-q")
    agent_id, work = branch
    commit(work, "own", file="own\n")
    part = work / name
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    part.symlink_to(other / name)
    error = await lab.failure(agent_id)
    assert isinstance(error, HistoryLeftOut | RefRefused)
    assert "secret" not in error.message


async def test_git_as_a_file(lab: CommitLab, branch: Branch) -> None:
    """gitrepository-layout(5): `gitdir:` names another place."""
    agent_id, work = branch
    commit(work, "own", file="own\n")
    (work / ".git").rename(work / "elsewhere")
    (work / ".git").write_text("gitdir: elsewhere\n")
    error = await lab.failure(agent_id)
    assert isinstance(error, HistoryLeftOut)
    assert ".git is not a directory" in error.message


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/../../config",
        "ref: refs/heads/\x1b[2Jx",
        "ref: refs/heads/-x.lock",
        "ref: refs/notes/commits",
        "ref: /etc/passwd",
        "hello",
        "",
    ],
)
async def test_a_head_that_names_no_branch(lab: CommitLab, branch: Branch, head: str) -> None:
    """git-check-ref-format(1): refused, and escaped where it is said."""
    agent_id, work = branch
    commit(work, "own", file="own\n")
    (work / ".git/HEAD").write_text(f"{head}\n")
    error = await lab.failure(agent_id)
    assert isinstance(error, RefRefused)
    assert error.message.isprintable()


async def test_refs_that_are_left_out(lab: CommitLab, branch: Branch) -> None:
    """Tags, notes, other branches and names that git refuses are said, and not in the bundle."""
    agent_id, work = branch
    tip = commit(work, "own", file="own\n")
    git(work, "tag", "v1")
    git(work, "notes", "add", "-m", "note")
    git(work, "branch", "other", lab.start)
    refs = work / ".git/refs/heads"
    (refs / "\x1b[2J").write_text(f"{tip}\n")
    os.mkfifo(refs / "pipe")
    (refs / "link").symlink_to("/etc/passwd")
    page = await lab.page(agent_id)
    assert left_out(page) == {
        "refs/heads/\\x1b[2J": "git refuses this name of a ref",
        "refs/heads/other": "another branch than that of HEAD",
        "refs/notes/commits": "outside of refs/heads",
        "refs/tags/v1": "outside of refs/heads",
    }
    heads = git(lab.workspace, "bundle", "list-heads", str(lab.made(agent_id) / "bundle"))
    assert heads == f"{tip} refs/heads/agentbox/{agent_id}"
