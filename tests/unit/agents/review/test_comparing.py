"""What is found in a branch, and what is never applied from it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import review_scenario
from review_scenario import ODD, ReviewScenario, by_path

from agentbox.agents.review import compare
from agentbox.agents.review.change import Review
from agentbox.agents.review.compare import MAX_HOLES, ReviewTooLarge, is_inside
from agentbox.agents.runs import home


@pytest.fixture
def scenario(tmp_path: Path) -> ReviewScenario:
    return ReviewScenario(tmp_path)


def test_no_change(scenario: ReviewScenario) -> None:
    """A branch that was only read, or written unchanged, has no changes."""
    (scenario.workspace / "file").write_text("same")
    (scenario.workspace / "large").write_bytes(bytes(1 << 20))
    work = scenario.begin()
    (work / "file").read_text()
    (work / "file").write_text("same")
    (work / "large").write_bytes(bytes(1 << 20))
    os.utime(work / "large", (1, 1))
    found = scenario.comparison()
    assert (found.changes, found.skipped, found.emptied) == ([], [], [])


def test_a_change_that_hides_behind_its_time(scenario: ReviewScenario) -> None:
    """Size and time set back to what they were do not hide other bytes."""
    (scenario.workspace / "file").write_text("aaaa")
    work = scenario.begin()
    before = (work / "file").stat()
    (work / "file").write_text("bbbb")
    os.utime(work / "file", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert by_path(scenario.comparison().changes) == {"file": "modified"}


def test_what_is_never_taken(scenario: ReviewScenario) -> None:
    """Links that lead out, pipes, git's own files under any spelling; setuid bits are dropped. Each
    is reported."""
    outside = scenario.root / "secret"
    outside.write_text("secret")
    work = scenario.begin()
    (work / "abs").symlink_to(outside)
    (work / "up").symlink_to("../secret")
    (work / "round").symlink_to("d/../../secret")
    (work / "config").symlink_to(".git/config")
    (work / "d").mkdir()
    (work / "d/fine").symlink_to("../file")
    (work / "d/deep").symlink_to("../../secret")
    for name in (".git", ".GIT", "git~1", ".git.", ".g\u200cit"):
        (work / "d" / name).mkdir()
        (work / "d" / name / "hook").write_text("#!/bin/sh")
    (work / ".git").mkdir()
    (work / ".git/config").write_text("[core]\n\tfsmonitor = touch x\n")
    os.mkfifo(work / "pipe")
    (work / "file").write_text("file")
    (work / "file").chmod(0o6755)
    review = scenario.review()
    assert {one.path for one in review.left_out} == {
        "abs", "up", "round", "config", "d/deep", "pipe", ".git", "d/.git", "d/.GIT", "d/git~1", "d/.git.", "d/.g\u200cit",
    }  # fmt: skip
    assert by_path(review.changes) == {"file": "added", "d/fine": "added"}
    scenario.apply(review)
    assert sorted(scenario.tree()) == ["d", "d/fine", "file"]
    assert (scenario.workspace / "file").stat().st_mode & 0o7777 == 0o755


def test_a_branch_closed_to_its_reader(scenario: ReviewScenario) -> None:
    """Directories and files without any permission are still read, and their modes are recorded."""
    work = scenario.begin()
    (work / "d").mkdir()
    (work / "d/file").write_text("x")
    (work / "d/file").chmod(0)
    (work / "d").chmod(0)
    review = scenario.review()
    assert by_path(review.changes) == {"d/file": "added"}
    scenario.apply(review)
    assert (scenario.workspace / "d/file").stat().st_mode & 0o777 == 0


def test_what_runs_by_itself_is_first(scenario: ReviewScenario) -> None:
    """Marked with the program that runs it; capitals hide nothing."""
    work = scenario.begin()
    for name in (
        "a.py",
        ".github/workflows/ci.yml",
        "sub/.envrc",
        "MAKEFILE",
        ".vscode/tasks.json",
        "CLAUDE.md",
        "zz",
        "gulpfile.mjs",
        "Tiltfile",
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    changes = scenario.comparison().changes
    assert [one.path for one in changes if not one.runs] == ["a.py", "zz"]
    assert [bool(one.runs) for one in changes] == [True] * 7 + [False] * 2


def test_case_is_kept(scenario: ReviewScenario) -> None:
    """Two names that differ in case are two files."""
    (scenario.workspace / "Name").write_text("1")
    work = scenario.begin()
    (work / "name").write_text("2")
    assert scenario.apply() == 1
    assert sorted(scenario.tree()) == ["Name", "name"]


def test_digest_is_over_all(scenario: ReviewScenario) -> None:
    """Any other byte, mode, path or skipped entry is another digest; a stored record is checked
    against its own."""
    work = scenario.begin()
    (work / ODD).write_text("x")
    first = scenario.review()
    assert Review.from_json(first.to_json()) == first
    (work / ODD).write_text("y")
    second = scenario.review()
    os.mkfifo(work / "pipe")
    assert len({first.digest, second.digest, scenario.review().digest}) == 3
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
    assert is_inside(path, leads) is inside


def test_folders_in_folders_without_end_are_left_out(scenario: ReviewScenario) -> None:
    """What is deeper than any project is reported and not entered; everything else is included."""
    work = scenario.begin()
    (work / "near").touch()
    place = os.open(work, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=place))
    os.close(place)
    found = scenario.comparison()
    assert by_path(found.changes) == {"near": "added"}
    assert [(len(one.path), one.why) for one in found.skipped] == [
        (513, "deeper than 256 directories")
    ]
    home.remove(work)


def test_holes_without_end_are_left_out(scenario: ReviewScenario) -> None:
    """A sparse file costs its author nothing and its reader everything: only so much of that is
    read."""
    work = scenario.begin()
    (work / "text").write_text("text")
    for name in ("first", "second"):
        with (work / name).open("wb") as out:
            out.truncate(MAX_HOLES - (1 << 20) if name == "first" else 1 << 40)
    found = scenario.comparison()
    assert by_path(found.changes) == {"first": "added", "text": "added"}
    assert [(one.path, "holes" in one.why) for one in found.skipped] == [("second", True)]


def test_more_paths_than_a_review_holds(
    scenario: ReviewScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is never treated as complete: there is no review. The limit counts what the agent
    created, not the workspace."""
    monkeypatch.setattr(compare, "MAX_PATHS", 5)
    for number in range(20):
        (scenario.workspace / str(number)).touch()
    work = scenario.begin()
    for number in range(5):
        (work / f"new {number}").touch()
    assert len(scenario.comparison().changes) == 5
    (work / "one more").symlink_to("/etc")
    with pytest.raises(ReviewTooLarge, match="5 changed paths"):
        scenario.comparison()


def test_a_folder_closed_to_its_owner_hides_nothing(scenario: ReviewScenario) -> None:
    """An agent removed all permissions of a directory, and of the branch itself: its content is
    shown and applied."""
    work = scenario.begin()
    (work / "d/inner").mkdir(parents=True)
    (work / "d/inner/file").write_text("new")
    for path in (work / "d/inner", work / "d", work):
        path.chmod(0)
    code = (
        "import sys; from pathlib import Path; from review_scenario import ReviewScenario\n"
        "scenario, root = ReviewScenario.__new__(ReviewScenario), Path(sys.argv[1])\n"
        "scenario.root, scenario.workspace, scenario.journal = root, root / 'workspace', root / 'commit.json'\n"
        "scenario.work = root / 'branch/work'\n"
        "print([one.path for one in scenario.comparison().changes], scenario.apply())"
    )
    # The box's uid has no capabilities: without these two, modes apply to root as they do to it.
    without = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    done = subprocess.run(
        [*without, sys.executable, "-c", code, str(scenario.root)],
        env={**os.environ, "PYTHONPATH": str(Path(review_scenario.__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "['d/inner/file'] 1\n", done.stderr
    assert (scenario.workspace / "d/inner/file").read_text() == "new"


@pytest.mark.parametrize("spelled", ["HE\u200cAD", "HEAD\ufeff", "head", "HEAD."])
def test_a_repository_that_some_disk_takes_for_one_is_pointed_out(
    scenario: ReviewScenario, spelled: str
) -> None:
    """HFS+ ignores some characters of names, NTFS dots at their end; of files that run by themselves too."""
    work = scenario.begin()
    for name in ("objects", "refs\u200d"):
        (work / "lib" / name).mkdir(parents=True)
    for name in (spelled, "config"):
        (work / "lib" / name).write_text("x")
    (work / "Make\u200cfile").write_text("x")
    shown = {one.path: bool(one.runs) for one in scenario.comparison().changes}
    assert shown == {f"lib/{spelled}": True, "lib/config": True, "Make\u200cfile": True}


@pytest.mark.parametrize("third", ["objects-and-refs", "commondir"])
def test_a_repository_without_its_own_folder_is_pointed_out(
    scenario: ReviewScenario, third: str
) -> None:
    """git treats a directory with HEAD, objects and refs as a repository and runs programs that its
    config names: each file of it is shown first, also where only `config` is the agent's."""
    (scenario.workspace / "old").mkdir()
    for path in ("old/HEAD", "old/config"):
        (scenario.workspace / path).write_text("ref: refs/heads/main")
    for path in ("old/objects", "old/refs"):
        (scenario.workspace / path).mkdir()
    work = scenario.begin()
    (work / "vendor/lib").mkdir(parents=True)
    (work / "vendor/lib/HEAD").write_text("ref: refs/heads/main")
    (work / "vendor/lib/config").write_text("[core]\n\tfsmonitor = ./run\n")
    if third == "commondir":
        (work / "vendor/lib/commondir").write_text("../../elsewhere")
    else:
        (work / "vendor/lib/objects").mkdir()
        (work / "vendor/lib/refs").mkdir()
    (work / "old/config").write_text("[core]\n\tfsmonitor = ./run\n")
    (work / "plain").mkdir()
    (work / "plain/config").write_text("x")
    shown = {one.path: bool(one.runs) for one in scenario.comparison().changes}
    assert shown["vendor/lib/config"]
    assert shown["vendor/lib/HEAD"]
    assert shown["old/config"]
    assert not shown["plain/config"]


def test_a_path_that_no_program_can_open_is_left_out(scenario: ReviewScenario) -> None:
    """Directories created from within each other reach beyond PATH_MAX; the rest of the review can
    be applied."""
    work = scenario.begin()
    (work / "fine").write_text("x")
    here = os.open(work, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=here)
        deeper = os.open("n" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    found = scenario.comparison()
    assert by_path(found.changes) == {"fine": "added"}
    assert [one.why for one in found.skipped] == ["its path is longer than 4095 bytes"]
    assert scenario.apply() == 1
