"""A branch is the workspace as it is, and has a repository of its own."""

import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from agentbox.agents.review import baseline, branch
from agentbox.agents.review.baseline import BaselineEntry
from agentbox.agents.review.branch import Branch
from agentbox.agents.review.copying import TreeCopier

WHO = ("worker", "worker@agentbox.invalid")


def created_branch(tmp_path: Path) -> Branch:
    return branch.create(tmp_path / "workspace", tmp_path / "branch", tmp_path / "start.jsonl", WHO)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def git(folder: Path, *argv: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *argv], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A Person")
    git(folder, "config", "user.email", "person@example.org")
    (folder / "kept.txt").write_text("kept\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")


@pytest.mark.parametrize("few", [branch.SMALL_TREE, 0], ids=["one thread", "several programs"])
def test_files_are_as_they_are(
    tmp_path: Path, workspace: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modes, times, links, empty directories, names of any bytes; a large file; no setuid bit, and
    nothing special."""
    monkeypatch.setattr(branch, "SMALL_TREE", few)
    (workspace / "run").write_text("#!/bin/sh\n")
    (workspace / "run").chmod(0o4755)
    os.utime(workspace / "run", ns=(1, 1_600_000_000_123_456_789))
    (workspace / "read-only").write_text("r")
    (workspace / "read-only").chmod(0o444)
    (workspace / "large").write_bytes(b"x" * (1 << 20))
    (workspace / "empty").mkdir(mode=0o750)
    (workspace / "link").symlink_to("run")
    (workspace / "out").symlink_to("/etc/passwd")
    (workspace / os.fsdecode(b"new\nline-\xff")).write_text("odd")
    os.mkfifo(workspace / "pipe")
    (workspace / "closed").write_text("c")
    work = created_branch(tmp_path).work
    assert stat.S_IMODE((work / "run").stat().st_mode) == 0o755
    assert (work / "run").stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert stat.S_IMODE((work / "read-only").stat().st_mode) == 0o444
    assert (work / "large").read_bytes() == b"x" * (1 << 20)
    assert stat.S_IMODE((work / "empty").stat().st_mode) == 0o750
    assert [(work / name).readlink() for name in ("link", "out")] == [
        Path("run"),
        Path("/etc/passwd"),
    ]
    assert (work / os.fsdecode(b"new\nline-\xff")).read_text() == "odd"
    assert not (work / "pipe").exists()
    known = baseline.read(tmp_path / "start.jsonl")
    assert known is not None
    assert known.rows["pipe"].kind == "s"
    assert sorted(known.rows) == sorted(one.name for one in workspace.iterdir())


def test_bytes_count_and_not_the_size_that_is_told(tmp_path: Path) -> None:
    """A kernel file reports size 0, as does one that grew since: the bytes that are read are
    copied, and their hash recorded."""
    ends = [
        os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        for path in ("/proc/sys/kernel/random", tmp_path)
    ]
    copier = TreeCopier(*ends)
    copier.copy()
    for descriptor in ends:
        os.close(descriptor)
    data = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    assert (tmp_path / "boot_id").read_bytes() == data
    rows = {row.path: row for row in (BaselineEntry(*json.loads(line)) for line in copier.lines)}
    assert rows["boot_id"].content == hashlib.sha256(data).hexdigest()


def test_a_branch_is_made_once(tmp_path: Path, workspace: Path) -> None:
    """A second run finds what the first one left; an incomplete copy is made again."""
    (workspace / "file").write_text("old")
    work = created_branch(tmp_path).work
    (work / "file").write_text("mine")
    (workspace / "file").write_text("theirs")
    assert (created_branch(tmp_path).work / "file").read_text() == "mine"
    (tmp_path / "start.jsonl").unlink()
    assert (created_branch(tmp_path).work / "file").read_text() == "theirs"


def test_ten_thousand_files(tmp_path: Path, workspace: Path) -> None:
    """All of them, with progress reports on the way."""
    for folder in range(100):
        (workspace / f"d{folder}").mkdir()
        for file in range(100):
            (workspace / f"d{folder}/f{file}").touch()
    told: list[int] = []
    found = branch.create(
        workspace, tmp_path / "branch", tmp_path / "start.jsonl", WHO, told.append
    )
    assert sum(len(files) for _, _, files in os.walk(found.work)) == 10_000
    assert not told or max(told) <= 10_000


def test_a_repository_of_its_own(tmp_path: Path, workspace: Path) -> None:
    """status, diff and commit work inside; the workspace's refs, index and files stay, and no hook
    or filter is copied."""
    repository(workspace)
    (workspace / ".git/hooks/pre-commit").write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    (workspace / ".git/hooks/pre-commit").chmod(0o755)
    git(workspace, "config", "filter.bad.clean", f"touch {tmp_path}/filtered")
    git(workspace, "config", "core.fsmonitor", f"touch {tmp_path}/watched")
    (workspace / "new.txt").write_text("uncommitted\n")
    (workspace / ".gitignore").write_text("ignored\n")
    (workspace / "ignored").write_text("ignored\n")
    before = git(workspace, "-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    found = created_branch(tmp_path)
    assert found.objects == (str(workspace / ".git/objects"),)
    (tmp_path / "watched").unlink(missing_ok=True)
    assert git(found.work, "status", "--porcelain").splitlines() == ["?? .gitignore", "?? new.txt"]
    assert git(found.work, "log", "--format=%an %s") == "A Person first\n"
    (found.work / "kept.txt").write_text("changed\n")
    assert "+changed" in git(found.work, "diff")
    git(found.work, "add", "-A")
    git(found.work, "commit", "-q", "-m", "second")
    assert git(found.work, "log", "--format=%an %s") == "A Person second\nA Person first\n"
    assert git(workspace, "-c", "core.fsmonitor=false", "rev-parse", "HEAD") == before
    assert not any((tmp_path / name).exists() for name in ("hooked", "filtered", "watched"))
    assert not list((found.work / ".git").glob("hooks/*"))


def test_nobody_named(tmp_path: Path, workspace: Path) -> None:
    """If the repository has no author, the agent is the committer."""
    repository(workspace)
    git(workspace, "config", "--remove-section", "user")
    work = created_branch(tmp_path).work
    git(work, "commit", "-q", "--allow-empty", "-m", "mine")
    assert git(work, "log", "-1", "--format=%an <%ae>") == "worker <worker@agentbox.invalid>\n"


def test_repositories_inside(tmp_path: Path, workspace: Path) -> None:
    """A submodule and a clone have repositories of their own too; a linked worktree has none: it would share the refs."""
    repository(workspace)
    repository(tmp_path / "other")
    git(
        workspace,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(tmp_path / "other"),
        "sub",
    )
    git(workspace, "commit", "-q", "-m", "with a submodule")
    repository(workspace / "clone")
    git(workspace, "worktree", "add", "-q", "tree")
    found = created_branch(tmp_path)
    assert len(found.objects) == 3
    for folder in ("sub", "clone"):
        assert git(found.work / folder, "log", "--format=%s") == "first\n"
        git(
            found.work / folder,
            "-c",
            "user.name=x",
            "-c",
            "user.email=x",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "mine",
        )
        assert git(workspace / folder, "log", "--format=%s") == "first\n"
    assert not (found.work / "tree/.git").exists()
    assert git(found.work, "diff", "--name-only", "--ignore-submodules=untracked").split() == [
        "sub"
    ]  # its new commit


@pytest.mark.parametrize("at", [".git/objects", ".git/index", ".git/refs", ".git"])
def test_a_repository_that_leads_out(tmp_path: Path, workspace: Path, at: str) -> None:
    """A link in it grants no file or directory from elsewhere."""
    repository(workspace)
    outside = tmp_path / "outside"
    (workspace / at).rename(outside)
    (workspace / at).symlink_to(outside)
    found = created_branch(tmp_path)
    assert str(outside) not in str(found.objects)
    assert not (found.work / ".git/index").exists() or at == ".git/refs"
    alternates = found.work / ".git/objects/info/alternates"
    assert not alternates.exists() or str(outside) not in alternates.read_text()


def test_pointers_out_of_the_workspace(tmp_path: Path, workspace: Path) -> None:
    """A file named .git that points elsewhere, and alternates that do, are not followed."""
    repository(tmp_path / "elsewhere")
    for name, leads in (("a", "../../elsewhere/.git"), ("b", str(tmp_path / "elsewhere/.git"))):
        (workspace / name).mkdir()
        (workspace / name / ".git").write_text(f"gitdir: {leads}\n")
    repository(workspace / "c")
    (workspace / "c/.git/objects/info").mkdir(exist_ok=True)
    (workspace / "c/.git/objects/info/alternates").write_text(
        f"{tmp_path}/elsewhere/.git/objects\n"
    )
    found = created_branch(tmp_path)
    assert found.objects == (str(workspace / "c/.git/objects"),)
    assert not (found.work / "a/.git").exists()
    assert not (found.work / "b/.git").exists()
