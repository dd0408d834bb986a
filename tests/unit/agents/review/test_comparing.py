"""What is found in a branch, and what is never taken from it."""

import os
from pathlib import Path

import pytest
from review_desk import ODD, Desk, by_path

from agentbox.agents.review.change import Review
from agentbox.agents.review.compare import stays_inside


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_no_change(desk: Desk) -> None:
    """A branch that was only read, or written as it was, leaves nothing."""
    (desk.workspace / "file").write_text("same")
    (desk.workspace / "large").write_bytes(bytes(1 << 20))
    work = desk.begin()
    (work / "file").read_text()
    (work / "file").write_text("same")
    (work / "large").write_bytes(bytes(1 << 20))
    os.utime(work / "large", (1, 1))
    found = desk.found()
    assert (found.changes, found.left_out, found.emptied) == ([], [], [])


def test_a_change_that_hides_behind_its_time(desk: Desk) -> None:
    """Size and time set back to what they were do not hide other bytes."""
    (desk.workspace / "file").write_text("aaaa")
    work = desk.begin()
    before = (work / "file").stat()
    (work / "file").write_text("bbbb")
    os.utime(work / "file", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert by_path(desk.found().changes) == {"file": "modified"}


def test_what_is_never_taken(desk: Desk) -> None:
    """Links that lead out, pipes, git's own files under any spelling; setuid bits are dropped. Each is said."""
    outside = desk.root / "secret"
    outside.write_text("secret")
    work = desk.begin()
    (work / "abs").symlink_to(outside)
    (work / "up").symlink_to("../secret")
    (work / "round").symlink_to("d/../../secret")
    (work / "config").symlink_to(".git/config")
    (work / "d").mkdir()
    (work / "d/fine").symlink_to("../file")
    (work / "d/deep").symlink_to("../../secret")
    for name in (".git", ".GIT", "git~1", ".git."):
        (work / "d" / name).mkdir()
        (work / "d" / name / "hook").write_text("#!/bin/sh")
    (work / ".git").mkdir()
    (work / ".git/config").write_text("[core]\n\tfsmonitor = touch x\n")
    os.mkfifo(work / "pipe")
    (work / "file").write_text("file")
    (work / "file").chmod(0o6755)
    review = desk.review()
    assert {one.path for one in review.left_out} == {
        "abs", "up", "round", "config", "d/deep", "pipe", ".git", "d/.git", "d/.GIT", "d/git~1", "d/.git.",
    }  # fmt: skip
    assert by_path(review.changes) == {"file": "added", "d/fine": "added"}
    desk.take(review)
    assert sorted(desk.tree()) == ["d", "d/fine", "file"]
    assert (desk.workspace / "file").stat().st_mode & 0o7777 == 0o755


def test_a_branch_closed_to_its_reader(desk: Desk) -> None:
    """Folders and files without any right are read all the same, and their modes are taken as they are."""
    work = desk.begin()
    (work / "d").mkdir()
    (work / "d/file").write_text("x")
    (work / "d/file").chmod(0)
    (work / "d").chmod(0)
    review = desk.review()
    assert by_path(review.changes) == {"d/file": "added"}
    desk.take(review)
    assert (desk.workspace / "d/file").stat().st_mode & 0o777 == 0


def test_what_runs_by_itself_is_first(desk: Desk) -> None:
    """Marked with who runs it; capitals hide nothing."""
    work = desk.begin()
    for name in ("a.py", ".github/workflows/ci.yml", "sub/.envrc", "MAKEFILE", ".vscode/tasks.json", "CLAUDE.md", "zz"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    changes = desk.found().changes
    assert [one.path for one in changes if not one.runs] == ["a.py", "zz"]
    assert [bool(one.runs) for one in changes] == [True] * 5 + [False] * 2


def test_case_is_kept(desk: Desk) -> None:
    """Two names that differ in case are two files."""
    (desk.workspace / "Name").write_text("1")
    work = desk.begin()
    (work / "name").write_text("2")
    assert desk.take() == 1
    assert sorted(desk.tree()) == ["Name", "name"]


def test_digest_is_over_all(desk: Desk) -> None:
    """Any other byte, mode, path or left-out entry is another digest; a stored record is checked against its own."""
    work = desk.begin()
    (work / ODD).write_text("x")
    first = desk.review()
    assert Review.from_json(first.to_json()) == first
    (work / ODD).write_text("y")
    second = desk.review()
    os.mkfifo(work / "pipe")
    assert len({first.digest, second.digest, desk.review().digest}) == 3
    with pytest.raises(ValueError):
        Review.from_json({**first.to_json(), "digest": second.digest})


@pytest.mark.parametrize(
    ("path", "leads", "inside"),
    [
        ("a", "b", True), ("a", "./b/c", True), ("a/b", "../c", True), ("a", "../c", False), ("a/b", "../../c", False),
        ("a", "/etc", False), ("a", "b/../c", False), ("a/b/c", "../../x", True), ("a", ".git/x", False), ("a", ".", True),
    ],
)  # fmt: skip
def test_links(path: str, leads: str, inside: bool) -> None:
    """Relative, and up only at the beginning, no further than the workspace."""
    assert stays_inside(path, leads) is inside
