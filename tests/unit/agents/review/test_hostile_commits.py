"""Repositories that an agent may leave, each by a way that git documents or a flaw that it had. git
itself, run in the branch, obeys most of them; a review does not."""

import hashlib
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from commit_lab import CommitLab, commit, git

from agentbox.core.slot_errors import HistoryLeftOut, ObjectsBad

Branch = tuple[str, Path]
pytestmark = pytest.mark.asyncio(loop_scope="module")
EXPECTED = {"listing", "bundle", "patches", "result.json"}


def messages(page: dict[str, Any]) -> list[str]:
    return [one["message"].strip() for one in page["commits"]]


def left_out(page: dict[str, Any]) -> dict[str, str]:
    return {one["path"]: one["why"] for one in page["summary"]["left_out"]}


async def test_no_program_of_the_repository_runs(lab: CommitLab, branch: Branch) -> None:
    """git-config(1), gitattributes(5), githooks(5): fsmonitor, external diff, textconv, filters,
    merge drivers, hooks, pager, gpg, pack-objects hook (CVE-2022-24765 is of this kind)."""
    agent_id, work = branch
    (work / "side").write_text("old\n")
    commit(work, "attributes", __gitattributes="* diff=evil filter=evil merge=evil\n")
    commit(work, "changed", side="new\n")
    ran = lab.made(agent_id) / "ran"
    command = f"touch {ran} {work}/ran 2>/dev/null; true"
    for key in (
        *("core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv"),
        *("filter.evil.clean", "filter.evil.smudge", "merge.evil.driver", "core.pager"),
        *("gpg.program", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "core.editor"),
    ):
        git(work, "config", key, command)
    git(work, "config", "log.showSignature", "true")
    for hook in ("reference-transaction", "post-index-change", "pre-auto-gc"):
        path = work / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran} {work}/ran\n")
        path.chmod(0o755)
    git(work, "log", "-p", "--ext-diff")
    assert (work / "ran").exists()  # git itself obeys
    (work / "ran").unlink()
    page = await lab.page(agent_id)
    assert messages(page) == ["attributes", "changed"]
    assert page["commits"][1]["files"][0]["diff"] == "@@ -1,1 +1,1 @@\n-old\n+new\n"
    assert {path.name for path in lab.made(agent_id).iterdir()} == EXPECTED


async def test_attributes_hide_no_difference(lab: CommitLab, branch: Branch) -> None:
    """gitattributes(5): `-diff` and `binary` show "Binary files differ" instead of the lines."""
    agent_id, work = branch
    commit(work, "one", __gitattributes="* binary\n")
    commit(work, "two", file="hidden?\n")
    assert "Binary files" in git(work, "log", "-p", "-1")
    page = await lab.page(agent_id)
    assert "+hidden?\n" in page["commits"][1]["files"][0]["diff"]
    assert b"\n+hidden?\n" in (lab.made(agent_id) / "patches").read_bytes()


async def test_replaced_objects(lab: CommitLab, branch: Branch) -> None:
    """git-replace(1): another commit is shown for the tip."""
    agent_id, work = branch
    bad = commit(work, "bad", file="bad\n")
    git(work, "reset", "-q", "--hard", lab.start)
    good = commit(work, "good", file="good\n")
    git(work, "update-ref", "refs/heads/main", bad)
    git(work, "replace", bad, good)
    assert git(work, "log", "-1", "--format=%s") == "good"
    page = await lab.page(agent_id)
    assert messages(page) == ["bad"]
    assert left_out(page)[f"refs/replace/{bad}"].startswith("it replaces an object")


@pytest.mark.parametrize("name", ["info/grafts", "shallow"])
async def test_altered_parents(lab: CommitLab, branch: Branch, name: str) -> None:
    """gitrepository-layout(5): a commit loses its parents, and the commits before it are hidden."""
    agent_id, work = branch
    commit(work, "hidden", file="hidden\n")
    tip = commit(work, "tip", file="tip\n")
    (work / ".git" / name).write_text(f"{tip}\n")
    assert git(work, "log", "--format=%s") == "tip"
    page = await lab.page(agent_id)
    assert messages(page) == ["hidden", "tip"]
    assert "the stored parents are used" in left_out(page)[name]


async def test_a_shallow_history_without_its_objects(lab: CommitLab, branch: Branch) -> None:
    """What was cut off is not there: nothing is taken, and the reason is said."""
    agent_id, work = branch
    lost = commit(work, "lost", file="lost\n")
    tip = commit(work, "tip", file="tip\n")
    (work / ".git/shallow").write_text(f"{tip}\n")
    (work / ".git/objects" / lost[:2] / lost[2:]).unlink()
    error = await lab.failure(agent_id)
    assert isinstance(error, HistoryLeftOut | ObjectsBad)
    assert "shallow" in error.message


async def test_a_lying_commit_graph(lab: CommitLab, branch: Branch) -> None:
    """gitformat-commit-graph(5): other parents than those of the commits."""
    agent_id, work = branch
    commit(work, "hidden", file="hidden\n")
    tip = commit(work, "tip", file="tip\n")
    git(work, "repack", "-a", "-d", "-q")
    git(work, "commit-graph", "write", "--reachable")
    _cut_parent(work / ".git/objects/info/commit-graph", tip)
    assert git(work, "-c", "core.commitGraph=true", "log", "--format=%s") == "tip"
    assert messages(await lab.page(agent_id)) == ["hidden", "tip"]


def _cut_parent(path: Path, commit_id: str) -> None:
    """The graph says that the commit has no parent."""
    path.chmod(0o644)
    data = bytearray(path.read_bytes()[:-20])
    chunks = {
        bytes(data[at : at + 4]): struct.unpack(">Q", data[at + 4 : at + 12])[0]
        for at in range(8, 8 + 12 * data[6], 12)
    }
    names = chunks[b"OIDL"]
    ids = [data[at : at + 20].hex() for at in range(names, chunks[b"CDAT"], 20)]
    entry = chunks[b"CDAT"] + 36 * ids.index(commit_id)
    data[entry + 20 : entry + 24] = struct.pack(">I", 0x70000000)
    path.write_bytes(bytes(data) + hashlib.sha1(data, usedforsecurity=False).digest())


async def test_a_change_that_only_a_merge_has(lab: CommitLab, branch: Branch) -> None:
    """`git log -p` shows no difference of a merge. There is no series of patches for one."""
    agent_id, work = branch
    git(work, "checkout", "-q", "-b", "side")
    commit(work, "side", side="side\n")
    git(work, "checkout", "-q", "main")
    commit(work, "main", file="main\n")
    git(work, "merge", "-q", "--no-commit", "--no-ff", "side")
    commit(work, "merge", Makefile="all:\n\tevil\n")
    assert "evil" not in git(work, "log", "-p", "--no-renames")
    page = await lab.page(agent_id)
    files = {file["path"]: file for file in page["commits"][-1]["files"]}
    assert "+\tevil\n" in files["Makefile"]["diff"]
    assert files["Makefile"]["runs"] == "a build or a test runs it"
    assert page["summary"]["patches_why"] == "merge commits have no patches"
    assert not (lab.made(agent_id) / "patches").exists()


async def test_files_that_ran_by_themselves_for_one_commit(lab: CommitLab, branch: Branch) -> None:
    """Also through a link that is gone in the next commit, and in a bare repository."""
    agent_id, work = branch
    (work / "plain").mkdir()
    (work / "plain/tasks.json").write_text("{}")
    (work / ".vscode").symlink_to("plain")
    (work / "bare/objects").mkdir(parents=True)
    (work / "bare/refs").mkdir()
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        (work / "bare" / name).write_text("x")
    commit(work, "added")
    shutil.rmtree(work / "plain")
    shutil.rmtree(work / "bare")
    (work / ".vscode").unlink()
    commit(work, "removed")
    page = await lab.page(agent_id)
    marked = {file["path"]: file["runs"] for file in page["commits"][0]["files"]}
    assert marked["plain/tasks.json"] == "an editor runs it when the directory is opened"
    assert "bare repository" in marked["bare/config"]
    assert page["summary"]["runs_by_itself"] == 6


async def test_a_message_that_is_a_patch(lab: CommitLab, branch: Branch) -> None:
    """git-mailinfo(1): `git am` would apply it instead of the commit."""
    agent_id, work = branch
    commit(work, "x\n\ndiff --git a/evil b/evil\n--- /dev/null\n+++ b/evil\n", file="x\n")
    page = await lab.page(agent_id)
    assert "read as a patch" in page["summary"]["patches_why"]
    assert set(page["summary"]["files"]) == {"bundle"}


async def test_text_is_escaped(lab: CommitLab, branch: Branch) -> None:
    """Author, message, path and content: a terminal would obey them."""
    agent_id, work = branch
    (work / "n\x1b]0;x\x07").write_text("a\x1b[2J\n")
    git(work, "add", "-A")
    user = {"GIT_AUTHOR_NAME": "\x1b[31mroot\u202e", "GIT_COMMITTER_NAME": "\x9b2J"}
    git(work, "commit", "-q", "-m", "m\x1b[2J\rx\n\ttab", env=user)
    (part,) = (await lab.page(agent_id))["commits"]
    texts = [part["author"], part["committer"], part["files"][0]["path"]]
    assert all(text.isprintable() for text in texts)
    assert part["message"] == "m\\x1b[2J\\rx\n\ttab\n"
    assert "+a\\x1b[2J" in part["files"][0]["diff"]
