"""A review opens and copies nothing over a link: not even one that is created between two checks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentbox.agents.review import branch
from agentbox.agents.review.pages import page
from tests.unit.agents.review_scenario import ReviewScenario

WHO = ("worker", "worker@agentbox.invalid")


def repository(folder: Path) -> None:
    """The minimum that git accepts as one."""
    (folder / "objects/info").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")


def change_after_copy(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """`change` happens after the files were copied, and before the repositories are."""
    copy = branch._copy

    def then(*words: Any) -> Any:
        found = copy(*words)
        change()
        return found

    monkeypatch.setattr(branch, "_copy", then)


def test_a_workspace_that_became_a_link_is_not_written(tmp_path: Path) -> None:
    """Neither applied nor shown: the review is of another directory."""
    scenario = ReviewScenario(tmp_path)
    (scenario.begin() / "new").write_text("x")
    review = scenario.review()
    target = tmp_path / "target"
    target.mkdir()
    scenario.workspace.rename(tmp_path / "moved")
    scenario.workspace.symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        scenario.apply(review)
    with pytest.raises(OSError, match="symbolic link"):
        page(replace(review, workspace=str(scenario.workspace)), scenario.work, 0, 10)
    assert sorted(target.iterdir()) == []


def test_a_folder_that_was_a_link_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link was copied; then it is a directory with a repository, whose copy would go where the
    link leads."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "p").mkdir(parents=True)
    outside.mkdir()
    (workspace / "sub").symlink_to(outside)
    (workspace / "p/.git").write_text("gitdir: ../sub/.git/modules/x\n")

    def flip() -> None:
        (workspace / "sub").unlink()
        repository(workspace / "sub/.git/modules/x")

    change_after_copy(monkeypatch, flip)
    with pytest.raises(OSError):
        branch.create(workspace, tmp_path / "branch", tmp_path / "start.jsonl", WHO)
    assert sorted(outside.iterdir()) == []
    assert not (tmp_path / "start.jsonl").exists()


@pytest.mark.parametrize("part", ["objects/info", "info"])
def test_no_part_of_a_repository_is_read_through_a_link(tmp_path: Path, part: str) -> None:
    """A directory on the way to a file of it may be a link as well as the file."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    repository(workspace / ".git")
    (workspace / "lent/objects").mkdir(parents=True)
    outside.mkdir()
    (outside / "exclude").write_text("secret")
    (outside / "alternates").write_text(f"{workspace}/lent/objects\n")
    if part == "objects/info":
        (workspace / ".git/objects/info").rmdir()
    (workspace / ".git" / part).symlink_to(outside)
    made = branch.create(workspace, tmp_path / "branch", tmp_path / "start.jsonl", WHO)
    assert made.objects == (f"{workspace}/.git/objects",)
    assert not (made.work / ".git/info/exclude").exists()


@pytest.mark.parametrize("few", [branch.SMALL_TREE, 0], ids=["one thread", "several programs"])
def test_the_source_that_is_copied_is_the_one_that_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Its name may mean another directory a moment later."""
    monkeypatch.setattr(branch, "SMALL_TREE", few)
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "mine").touch()
    (outside / "secret").touch()
    count = branch._is_small

    def swap_first(source: Any) -> bool:
        answer = count(source)
        workspace.rename(tmp_path / "moved")
        workspace.symlink_to(outside)
        return answer

    monkeypatch.setattr(branch, "_is_small", swap_first)
    made = branch.create(workspace, tmp_path / "branch", tmp_path / "start.jsonl", WHO)
    assert [one.name for one in made.work.iterdir()] == ["mine"]
