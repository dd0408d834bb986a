"""Objects that an agent may leave: wrong, refused by fsck, or too many. Each names its flaw in git's history or the page of git
that says so."""

import hashlib
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
from commit_lab import CommitLab, commit, git

from agentbox.agents.review import reviews
from agentbox.core.slot_errors import HistoryLeftOut, ObjectsBad

Branch = tuple[str, Path]
pytestmark = pytest.mark.asyncio(loop_scope="module")
EXPECTED = {"listing", "bundle", "patches", "result.json"}


def messages(page: dict[str, Any]) -> list[str]:
    return [one["message"].strip() for one in page["commits"]]


def left_out(page: dict[str, Any]) -> dict[str, str]:
    return {one["path"]: one["why"] for one in page["summary"]["left_out"]}


async def test_an_object_with_other_content_than_its_name(lab: CommitLab, branch: Branch) -> None:
    """git compares them only in fsck: what is shown would not be what a receiver computes."""
    agent_id, work = branch
    commit(work, "tip", file="shown\n")
    blob = git(work, "rev-parse", "HEAD:file")
    path = work / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 6\0other\n"))
    assert git(work, "cat-file", "blob", blob) == "other"
    assert isinstance(await lab.failure(agent_id), ObjectsBad)


TREES = {
    "hasDotgit": b"100644 .git",  # CVE-2014-9390
    "hasDotgit ": b"100644 .GIT",
    "hasDotgit  ": b"100644 git~1",
    "hasDotgit   ": ".g\u200cit".encode().join([b"100644 ", b""]),
    "hasDotdot": b"40000 ..",
    "fullPathname": b"100644 a/b",
    "gitmodulesSymlink": b"120000 .gitmodules",  # CVE-2018-11235
    "zeroPaddedFilemode": b"0100644 a",
}


@pytest.mark.parametrize("word", list(TREES))
async def test_trees_that_fsck_refuses(lab: CommitLab, branch: Branch, word: str) -> None:
    """git-fsck(1): names that a file system takes for .git (HFS+, NTFS), and others that no git
    would write. fsck's word is in the error."""
    agent_id, work = branch
    kind = "tree" if TREES[word].startswith(b"40000") else "blob"
    inner = git(work, "hash-object", "-w", "-t", kind, "--stdin")
    entry = TREES[word] + b"\0" + bytes.fromhex(inner)
    tree = git(work, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=entry)
    made = git(work, "commit-tree", tree, "-p", lab.start, "-m", "x")
    git(work, "update-ref", "refs/heads/main", made)
    (work / "file").write_text("changed\n")
    error = await lab.failure(agent_id)
    assert isinstance(error, ObjectsBad)
    assert word.strip().lower() in error.message.lower()


MODULES = {
    "gitmodulesName": '[submodule "../../x"]\n\tpath = x\n\turl = ./x\n',  # CVE-2018-11235
    "gitmodulesUrl": '[submodule "x"]\n\tpath = x\n\turl = -u./x\n',  # CVE-2018-17456
    "gitmodulesPath": '[submodule "x"]\n\tpath = -x\n\turl = ./x\n',  # CVE-2018-17456
    "gitmodulesUpdate": '[submodule "x"]\n\tpath = x\n\turl = ./x\n\tupdate = !x\n',  # CVE-2019-19604
}


@pytest.mark.parametrize("word", list(MODULES))
async def test_gitmodules(lab: CommitLab, branch: Branch, word: str) -> None:
    """Names, addresses and commands that ran programs in a clone."""
    agent_id, work = branch
    commit(work, "x", __gitmodules=MODULES[word])
    error = await lab.failure(agent_id)
    assert isinstance(error, ObjectsBad)
    assert word in error.message


async def test_a_submodule_link_is_said(lab: CommitLab, branch: Branch) -> None:
    """gitsubmodules(7): its commits are of another repository."""
    agent_id, work = branch
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{lab.start},sub")
    git(work, "commit", "-q", "-m", "link")
    page = await lab.page(agent_id)
    assert left_out(page)["sub"].startswith("a submodule link")
    assert lab.start in page["commits"][0]["files"][0]["diff"]


async def test_too_many_commits(lab: CommitLab, branch: Branch) -> None:
    """1,001 of them: the bound is said."""
    agent_id, work = branch
    stream = b"".join(
        b"commit refs/heads/main\ncommitter a <a> %d +0000\ndata 1\nx\n%s"
        % (number, b"" if number else b"from %s\n" % lab.start.encode())
        for number in range(1001)
    )
    git(work, "fast-import", "--quiet", data=stream)
    (work / "file").write_text("changed\n")
    error = await lab.failure(agent_id)
    assert "more than 1,000 commits" in error.message


async def test_a_blob_that_unpacks_to_more_than_the_bound(lab: CommitLab, branch: Branch) -> None:
    """257 MiB of zeros are about 1 MB in a loose object, and less in a pack."""
    agent_id, work = branch
    size = 257 << 20
    data = b"blob %d\0" % size + bytes(size)
    blob = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    path = work / ".git/objects" / blob[:2] / blob[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(data, 1))
    tree = git(work, "mktree", data=f"100644 blob {blob}\tbig\n".encode())
    made = git(work, "commit-tree", tree, "-p", lab.start, "-m", "bomb")
    git(work, "update-ref", "refs/heads/main", made)
    (work / "file").write_text("changed\n")
    error = await lab.failure(agent_id)
    assert "more than 256 MiB" in error.message


async def test_a_tree_that_names_itself_many_times(lab: CommitLab, branch: Branch) -> None:
    """Ten levels of ten entries: 10 objects, 10^10 paths."""
    agent_id, work = branch
    inner, mode = git(work, "hash-object", "-w", "--stdin"), "100644 blob"
    for _ in range(10):
        rows = "".join(f"{mode} {inner}\t{number}\n" for number in range(10))
        inner, mode = git(work, "mktree", data=rows.encode()), "040000 tree"
    made = git(work, "commit-tree", inner, "-p", lab.start, "-m", "bomb")
    git(work, "update-ref", "refs/heads/main", made)
    (work / "file").write_text("changed\n")
    assert isinstance(await lab.failure(agent_id), HistoryLeftOut)


async def test_a_pipe_among_the_objects(
    lab: CommitLab, branch: Branch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git would wait for its writer: the bound of time ends it."""
    monkeypatch.setattr(reviews, "SECONDS", 2.0)
    agent_id, work = branch
    blob = commit(work, "own", file="own\n")
    path = work / ".git/objects" / blob[:2] / blob[2:]
    path.unlink()
    os.mkfifo(path)
    assert isinstance(await lab.failure(agent_id), HistoryLeftOut | ObjectsBad)
