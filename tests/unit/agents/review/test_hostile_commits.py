"""Repositories that an agent may leave, each by a way that git documents or a flaw that it had. git
itself, run in the branch, obeys most of them; a review does not."""

import hashlib
import os
import shutil
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from commit_lab import CommitLab, commit, git

from agentbox.agents.review.commits import extraction
from agentbox.core.slot_errors import AdapterError, HistoryLeftOut, ObjectsBad, RefRefused
from agentbox.sandbox.launcher.client import LauncherClient

pytestmark = pytest.mark.asyncio(loop_scope="module")
EXPECTED = {"listing", "bundle", "patches", "result.json"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommitLab]:
    launcher = LauncherClient()
    yield CommitLab(tmp_path_factory.mktemp("lab"), launcher)
    await launcher.close()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _clean(lab: CommitLab) -> AsyncIterator[None]:
    yield
    for one in lab.reviews.page():
        await lab.reviews.discard(one["agent_id"], "test")


async def failure(lab: CommitLab, agent_id: str) -> AdapterError:
    """Why nothing of that branch can be taken; the files can be."""
    with pytest.raises(AdapterError) as caught:
        await lab.page(agent_id)
    assert agent_id in {one["agent_id"] for one in lab.reviews.page()}
    assert not (lab.made(agent_id) / "bundle").exists() or isinstance(caught.value, ObjectsBad)
    return caught.value


def messages(page: dict[str, Any]) -> list[str]:
    return [one["message"].strip() for one in page["commits"]]


def left_out(page: dict[str, Any]) -> dict[str, str]:
    return {one["path"]: one["why"] for one in page["summary"]["left_out"]}


async def test_no_program_of_the_repository_runs(lab: CommitLab) -> None:
    """git-config(1), gitattributes(5), githooks(5): fsmonitor, external diff, textconv, filters,
    merge drivers, hooks, pager, gpg, pack-objects hook (CVE-2022-24765 is of this kind)."""
    agent_id, work = lab.begin()
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


async def test_attributes_hide_no_difference(lab: CommitLab) -> None:
    """gitattributes(5): `-diff` and `binary` show "Binary files differ" instead of the lines."""
    agent_id, work = lab.begin()
    commit(work, "one", __gitattributes="* binary\n")
    commit(work, "two", file="hidden?\n")
    assert "Binary files" in git(work, "log", "-p", "-1")
    page = await lab.page(agent_id)
    assert "+hidden?\n" in page["commits"][1]["files"][0]["diff"]
    assert b"\n+hidden?\n" in (lab.made(agent_id) / "patches").read_bytes()


async def test_replaced_objects(lab: CommitLab) -> None:
    """git-replace(1): another commit is shown for the tip."""
    agent_id, work = lab.begin()
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
async def test_altered_parents(lab: CommitLab, name: str) -> None:
    """gitrepository-layout(5): a commit loses its parents, and the commits before it are hidden."""
    agent_id, work = lab.begin()
    commit(work, "hidden", file="hidden\n")
    tip = commit(work, "tip", file="tip\n")
    (work / ".git" / name).write_text(f"{tip}\n")
    assert git(work, "log", "--format=%s") == "tip"
    page = await lab.page(agent_id)
    assert messages(page) == ["hidden", "tip"]
    assert "the stored parents are used" in left_out(page)[name]


async def test_a_shallow_history_without_its_objects(lab: CommitLab) -> None:
    """What was cut off is not there: nothing is taken, and the reason is said."""
    agent_id, work = lab.begin()
    lost = commit(work, "lost", file="lost\n")
    tip = commit(work, "tip", file="tip\n")
    (work / ".git/shallow").write_text(f"{tip}\n")
    (work / ".git/objects" / lost[:2] / lost[2:]).unlink()
    error = await failure(lab, agent_id)
    assert isinstance(error, HistoryLeftOut | ObjectsBad)
    assert "shallow" in error.message


async def test_a_lying_commit_graph(lab: CommitLab) -> None:
    """gitformat-commit-graph(5): other parents than those of the commits."""
    agent_id, work = lab.begin()
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


async def test_an_object_with_other_content_than_its_name(lab: CommitLab) -> None:
    """git compares them only in fsck: what is shown would not be what a receiver computes."""
    agent_id, work = lab.begin()
    commit(work, "tip", file="shown\n")
    blob = git(work, "rev-parse", "HEAD:file")
    path = work / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 6\0other\n"))
    assert git(work, "cat-file", "blob", blob) == "other"
    assert isinstance(await failure(lab, agent_id), ObjectsBad)


@pytest.mark.parametrize("place", ["other", "relative"])
async def test_alternates_that_lead_elsewhere(lab: CommitLab, place: str, tmp_path: Path) -> None:
    """gitrepository-layout(5): objects of a repository that is not the agent's."""
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    secret = commit(other, "secret", secret="secret\n")
    agent_id, work = lab.begin()
    commit(work, "own", file="own\n")
    objects = other / ".git/objects"
    text = str(objects) if place == "other" else os.path.relpath(objects, work / ".git/objects")
    with (work / ".git/objects/info/alternates").open("a") as alternates:
        alternates.write(f"{text}\n")
    git(work, "update-ref", "refs/heads/main", secret)
    assert git(work, "log", "--format=%s") == "secret"
    error = await failure(lab, agent_id)
    assert isinstance(error, HistoryLeftOut)
    assert "objects/info/alternates names other objects" in error.message


@pytest.mark.parametrize("name", [".git", ".git/objects", ".git/objects/pack", ".git/HEAD"])
async def test_links_in_place_of_its_parts(lab: CommitLab, name: str, tmp_path: Path) -> None:
    """Another repository, or a part of it, by a link: nothing of it is read."""
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    commit(other, "secret", secret="secret\n")
    git(other, "repack", "-a", "-d", "-q")
    agent_id, work = lab.begin()
    commit(work, "own", file="own\n")
    part = work / name
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    part.symlink_to(other / name)
    error = await failure(lab, agent_id)
    assert isinstance(error, HistoryLeftOut | RefRefused)
    assert "secret" not in error.message


async def test_git_as_a_file(lab: CommitLab) -> None:
    """gitrepository-layout(5): `gitdir:` names another place."""
    agent_id, work = lab.begin()
    commit(work, "own", file="own\n")
    (work / ".git").rename(work / "elsewhere")
    (work / ".git").write_text("gitdir: elsewhere\n")
    error = await failure(lab, agent_id)
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
async def test_a_head_that_names_no_branch(lab: CommitLab, head: str) -> None:
    """git-check-ref-format(1): refused, and escaped where it is said."""
    agent_id, work = lab.begin()
    commit(work, "own", file="own\n")
    (work / ".git/HEAD").write_text(f"{head}\n")
    error = await failure(lab, agent_id)
    assert isinstance(error, RefRefused)
    assert error.message.isprintable()


async def test_refs_that_are_left_out(lab: CommitLab) -> None:
    """Tags, notes, other branches and names that git refuses are said, and not in the bundle."""
    agent_id, work = lab.begin()
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
async def test_trees_that_fsck_refuses(lab: CommitLab, word: str) -> None:
    """git-fsck(1): names that a file system takes for .git (HFS+, NTFS), and others that no git
    would write. fsck's word is in the error."""
    agent_id, work = lab.begin()
    kind = "tree" if TREES[word].startswith(b"40000") else "blob"
    inner = git(work, "hash-object", "-w", "-t", kind, "--stdin")
    entry = TREES[word] + b"\0" + bytes.fromhex(inner)
    tree = git(work, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=entry)
    made = git(work, "commit-tree", tree, "-p", lab.start, "-m", "x")
    git(work, "update-ref", "refs/heads/main", made)
    (work / "file").write_text("changed\n")
    error = await failure(lab, agent_id)
    assert isinstance(error, ObjectsBad)
    assert word.strip().lower() in error.message.lower()


MODULES = {
    "gitmodulesName": '[submodule "../../x"]\n\tpath = x\n\turl = ./x\n',  # CVE-2018-11235
    "gitmodulesUrl": '[submodule "x"]\n\tpath = x\n\turl = -u./x\n',  # CVE-2018-17456
    "gitmodulesPath": '[submodule "x"]\n\tpath = -x\n\turl = ./x\n',  # CVE-2018-17456
    "gitmodulesUpdate": '[submodule "x"]\n\tpath = x\n\turl = ./x\n\tupdate = !x\n',  # CVE-2019-19604
}


@pytest.mark.parametrize("word", list(MODULES))
async def test_gitmodules(lab: CommitLab, word: str) -> None:
    """Names, addresses and commands that ran programs in a clone."""
    agent_id, work = lab.begin()
    commit(work, "x", __gitmodules=MODULES[word])
    error = await failure(lab, agent_id)
    assert isinstance(error, ObjectsBad)
    assert word in error.message


async def test_a_submodule_link_is_said(lab: CommitLab) -> None:
    """gitsubmodules(7): its commits are of another repository."""
    agent_id, work = lab.begin()
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{lab.start},sub")
    git(work, "commit", "-q", "-m", "link")
    page = await lab.page(agent_id)
    assert left_out(page)["sub"].startswith("a submodule link")
    assert lab.start in page["commits"][0]["files"][0]["diff"]


async def test_a_change_that_only_a_merge_has(lab: CommitLab) -> None:
    """`git log -p` shows no difference of a merge. There is no series of patches for one."""
    agent_id, work = lab.begin()
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


async def test_files_that_ran_by_themselves_for_one_commit(lab: CommitLab) -> None:
    """Also through a link that is gone in the next commit, and in a bare repository."""
    agent_id, work = lab.begin()
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


async def test_a_message_that_is_a_patch(lab: CommitLab) -> None:
    """git-mailinfo(1): `git am` would apply it instead of the commit."""
    agent_id, work = lab.begin()
    commit(work, "x\n\ndiff --git a/evil b/evil\n--- /dev/null\n+++ b/evil\n", file="x\n")
    page = await lab.page(agent_id)
    assert "read as a patch" in page["summary"]["patches_why"]
    assert set(page["summary"]["files"]) == {"bundle"}


async def test_text_is_escaped(lab: CommitLab) -> None:
    """Author, message, path and content: a terminal would obey them."""
    agent_id, work = lab.begin()
    (work / "n\x1b]0;x\x07").write_text("a\x1b[2J\n")
    git(work, "add", "-A")
    user = {"GIT_AUTHOR_NAME": "\x1b[31mroot\u202e", "GIT_COMMITTER_NAME": "\x9b2J"}
    git(work, "commit", "-q", "-m", "m\x1b[2J\rx\n\ttab", env=user)
    (part,) = (await lab.page(agent_id))["commits"]
    texts = [part["author"], part["committer"], part["files"][0]["path"]]
    assert all(text.isprintable() for text in texts)
    assert part["message"] == "m\\x1b[2J\\rx\n\ttab\n"
    assert "+a\\x1b[2J" in part["files"][0]["diff"]


async def test_too_many_commits(lab: CommitLab) -> None:
    agent_id, work = lab.begin()
    stream = b"".join(
        b"commit refs/heads/main\ncommitter a <a> %d +0000\ndata 1\nx\n%s"
        % (number, b"" if number else b"from %s\n" % lab.start.encode())
        for number in range(1001)
    )
    git(work, "fast-import", "--quiet", data=stream)
    (work / "file").write_text("changed\n")
    error = await failure(lab, agent_id)
    assert "more than 1,000 commits" in error.message


async def test_a_blob_that_unpacks_to_more_than_the_bound(lab: CommitLab) -> None:
    """257 MiB of zeros are about 1 MB in a loose object, and less in a pack."""
    agent_id, work = lab.begin()
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
    error = await failure(lab, agent_id)
    assert "more than 256 MiB" in error.message


async def test_a_tree_that_names_itself_many_times(lab: CommitLab) -> None:
    """Ten levels of ten entries: 10 objects, 10^10 paths."""
    agent_id, work = lab.begin()
    inner, mode = git(work, "hash-object", "-w", "--stdin"), "100644 blob"
    for _ in range(10):
        rows = "".join(f"{mode} {inner}\t{number}\n" for number in range(10))
        inner, mode = git(work, "mktree", data=rows.encode()), "040000 tree"
    made = git(work, "commit-tree", inner, "-p", lab.start, "-m", "bomb")
    git(work, "update-ref", "refs/heads/main", made)
    (work / "file").write_text("changed\n")
    assert isinstance(await failure(lab, agent_id), HistoryLeftOut)


async def test_a_pipe_among_the_objects(lab: CommitLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """git would wait for its writer: the bound of time ends it."""
    monkeypatch.setattr(extraction, "SECONDS", 2.0)
    agent_id, work = lab.begin()
    blob = commit(work, "own", file="own\n")
    path = work / ".git/objects" / blob[:2] / blob[2:]
    path.unlink()
    os.mkfifo(path)
    assert isinstance(await failure(lab, agent_id), HistoryLeftOut | ObjectsBad)
