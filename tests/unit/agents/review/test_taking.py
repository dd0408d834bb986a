"""A review is applied completely or not at all, whatever happens meanwhile."""

import os
import signal
import stat
from pathlib import Path

import pytest
from review_scenario import ODD, ReviewScenario, by_path, filled

from agentbox.agents.review import baseline, branch
from agentbox.agents.review.change import Review
from agentbox.agents.review.compare import compare
from agentbox.agents.review.conflicts import Conflicts
from agentbox.agents.review.journal import recover


@pytest.fixture
def scenario(tmp_path: Path) -> ReviewScenario:
    return ReviewScenario(tmp_path)


def test_every_kind_of_change(scenario: ReviewScenario) -> None:
    """Each is listed once and applied; nothing of the commit remains; a second request finds
    nothing to do."""
    filled(scenario)
    review = scenario.review()
    assert by_path(review.changes) == {
        "text": "modified", "gone": "deleted", "mode": "modified", "link": "modified", "read-only": "modified",
        "folder/inner/file": "deleted", "becomes-a-folder": "deleted", "becomes-a-folder/x": "added",
        "becomes-a-file/inside": "deleted", "becomes-a-file": "added", f"made/deeper/{ODD}": "added",
    }  # fmt: skip
    assert scenario.apply(review) == 11
    after = scenario.tree()
    assert sorted(after) == sorted([
        "same", "text", "mode", "link", "read-only", "becomes-a-folder", "becomes-a-folder/x", "becomes-a-file", "made",
        "made/deeper", f"made/deeper/{ODD}",
    ])  # fmt: skip
    assert (
        (scenario.workspace / "text").read_text()
        == (scenario.workspace / "read-only").read_text()
        == "new"
    )
    assert (scenario.workspace / "mode").stat().st_mode & 0o777 == 0o755
    assert (scenario.workspace / "link").readlink() == Path("same")
    assert not scenario.journal.exists()
    assert scenario.apply(review) == 0


@pytest.mark.parametrize(
    "what", ["changed", "mode", "gone", "link", "folder", "parent-link", "touched large"]
)
def test_the_workspace_changed_meanwhile(scenario: ReviewScenario, what: str) -> None:
    """Nothing is applied, not even what could be; both versions are kept."""
    ws, outside = scenario.workspace, scenario.root / "outside"
    (ws / "d").mkdir()
    (ws / "d/file").write_text("old")
    (ws / "large").write_bytes(bytes(1 << 20))
    work = scenario.begin()
    (work / "d/file").write_text("agent's")
    (work / "large").write_bytes(b"1" * (1 << 20))
    (work / "other").write_text("other")
    outside.mkdir()
    match what:
        case "changed":
            (ws / "d/file").write_text("operator's")
        case "mode":
            (ws / "d/file").chmod(0o600)
        case "gone":
            (ws / "d/file").unlink()
        case "link":
            (ws / "d/file").unlink()
            (ws / "d/file").symlink_to(outside / "x")
        case "folder":
            (ws / "d/file").unlink()
            (ws / "d/file").mkdir()
        case "parent-link":
            (ws / "d").rename(outside / "d")
            (ws / "d").symlink_to(outside / "d")
        case "touched large":
            (ws / "large").write_bytes(b"2" * (1 << 20))
    before = scenario.tree()
    with pytest.raises(Conflicts) as refused:
        scenario.apply()
    assert list(refused.value.reasons) == ["large" if "large" in what else "d/file"]
    assert scenario.tree() == before
    assert not (outside / "x").exists()
    assert (work / "d/file").read_text() == "agent's"


def test_changed_between_the_look_and_the_exchange(scenario: ReviewScenario) -> None:
    """The result is checked: it is rolled back, and everything that was applied before it too."""
    filled(scenario)
    before = scenario.tree()
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        (scenario.workspace / "text").write_text("operator's")

    with pytest.raises(Conflicts) as refused:
        scenario.apply(on_step=step)
    assert list(refused.value.reasons) == ["text"]
    assert steps > 10
    assert {**scenario.tree(), "text": before["text"]} == before
    assert (scenario.workspace / "text").read_text() == "operator's"
    assert not scenario.journal.exists()


def test_what_is_written_to_a_file_that_was_put_survives_the_undoing(
    scenario: ReviewScenario,
) -> None:
    """The operator appends to two files that were applied already, then a conflict undoes the
    commit: both keep what was written, the error names them and where the previous file is, and the
    rest is restored."""
    (scenario.workspace / "a").write_text("old\n")
    (scenario.workspace / "last").write_text("old\n")
    work = scenario.begin()
    for name in ("a", "last", "new"):
        (work / name).write_text("agent's\n")
    written = 0

    def step() -> None:
        nonlocal written
        for name in ("a", "new"):
            path = scenario.workspace / name
            if path.exists() and path.read_text() == "agent's\n":
                with path.open("a") as file:
                    file.write("operator's\n")
                written += 1
                (scenario.workspace / "last").write_text("changed\n")

    (work / "zz").write_text("x")
    (work / "last").rename(work / "last.tmp")
    (work / "last.tmp").rename(work / "last")
    with pytest.raises(Conflicts) as refused:
        scenario.apply(on_step=step)
    assert written >= 1
    assert set(refused.value.preserved) <= {"a", "new"}
    assert "a" in refused.value.preserved
    assert (scenario.workspace / "a").read_text() == "agent's\noperator's\n"
    assert (scenario.workspace / refused.value.preserved["a"]).read_text() == "old\n"
    assert (scenario.workspace / "last").read_text() == "changed\n"
    assert not (scenario.workspace / "zz").exists()


def test_killed_at_each_step(scenario: ReviewScenario) -> None:
    """SIGKILL after every step: the next start has all of it or none of it, and the review can be
    applied again."""
    filled(scenario)
    review, before = scenario.review(), scenario.tree()
    undone = finished = 0
    for last in range(1, 100):
        child = os.fork()
        if child == 0:
            left = last

            def step() -> None:
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

            scenario.apply(review, step)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        found = recover(scenario.journal)
        phase = found and found.phase
        if os.WIFEXITED(status):
            break
        assert not scenario.journal.exists()
        if phase in ("staging", "swapping"):
            undone += 1
            assert scenario.tree() == before
        else:
            finished += 1
            assert scenario.apply(review) == 0
            break
    assert undone == 26  # a step more or less is an untested crash
    assert finished == 1


def test_a_full_disk(scenario: ReviewScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is applied when the workspace has no space; RLIMIT_FSIZE stands for a full volume."""
    import resource

    (scenario.workspace / "a").write_text("old")
    work = scenario.begin()
    (work / "a").write_text("new")
    (work / "big").write_bytes(bytes(1 << 20))
    review, before = scenario.review(), scenario.tree()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, hard))
    try:
        with pytest.raises(OSError):
            scenario.apply(review)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert scenario.tree() == before
    assert scenario.apply(review) == 2


def test_a_sealed_copy_that_changed(scenario: ReviewScenario) -> None:
    """Other bytes than those of the review are not applied."""
    work = scenario.begin()
    (work / "file").write_text("shown")
    review = scenario.review()
    (work / "file").write_text("other")
    with pytest.raises(OSError, match="differs from the review"):
        scenario.apply(review)
    assert scenario.tree() == {}


def test_two_reviews_touch_one_file(tmp_path: Path) -> None:
    """The first is applied; the second is a conflict, unless its content is the same."""
    scenario = ReviewScenario(tmp_path)
    (scenario.workspace / "file").write_text("old")
    works = []
    for name in ("one", "two", "three"):
        folder, start = tmp_path / name, tmp_path / f"{name}.jsonl"
        works.append((branch.create(scenario.workspace, folder, start, ("a", "b")).work, start))
        (works[-1][0] / "file").write_text("two" if name == "two" else "same")
    reviews = []
    for work, start in works:
        known = baseline.read(start)
        assert known is not None
        found = compare(work, scenario.workspace, known.rows)
        reviews.append(
            (
                work,
                Review(
                    agent_id="id", name="a", workspace="", sealed_at=0, changes=tuple(found.changes)
                ),
            )
        )
    answers: list[object] = []
    for scenario.work, review in reviews:
        try:
            answers.append(scenario.apply(review))
        except Conflicts as refused:
            answers.append(list(refused.reasons))
    assert answers == [1, ["file"], 0]


def test_nothing_is_opened_to_others(scenario: ReviewScenario) -> None:
    """A new or changed file that all may write, and a directory, are applied without that; what
    others could write before stays so."""
    (scenario.workspace / "shared").write_text("old")
    (scenario.workspace / "shared").chmod(0o664)
    (scenario.workspace / "own").write_text("old")
    (scenario.workspace / "own").chmod(0o644)
    work = scenario.begin()
    (work / "folder").mkdir()
    (work / "folder/new").write_text("new")
    for name in ("shared", "own"):
        (work / name).write_text("new")
    for name in ("shared", "own", "folder", "folder/new"):
        (work / name).chmod(0o777)
    review = scenario.review()
    assert {one.path for one in review.changes if any("others" in note for note in one.notes)} == {
        "shared", "own", "folder/new",
    }  # fmt: skip
    scenario.apply(review)
    modes = {
        name: stat.S_IMODE((scenario.workspace / name).stat().st_mode)
        for name in ("shared", "own", "folder", "folder/new")
    }
    assert modes == {"shared": 0o775, "own": 0o755, "folder": 0o755, "folder/new": 0o755}
