"""Files that run by themselves under a path that a link gives them."""

import time
from pathlib import Path

import pytest
from review_scenario import ReviewScenario

from agentbox.agents.review.autorun_links import mark_autorun
from agentbox.agents.review.change import FileChange, FileState

NEW = FileState(kind="file", mode=0o644, size=0, said="")


@pytest.fixture
def scenario(tmp_path: Path) -> ReviewScenario:
    return ReviewScenario(tmp_path)


@pytest.mark.parametrize(
    ("link", "leads", "file"),
    [
        (".vscode", "docs/ed", "docs/ed/tasks.json"),
        ("sub/.husky", "../docs", "docs/pre-commit"),
        (".github", "ci", "ci/workflows/build.yml"),
        (".github/workflows", "../ci", "ci/build.yml"),
        (".claude", ".", "settings.json"),
        ("Makefile", "notes.txt", "notes.txt"),
        (".idea", "one", "docs/ed/workspace.xml"),  # through a second link
    ],
)
def test_a_link_hides_nothing_that_runs(
    scenario: ReviewScenario, link: str, leads: str, file: str
) -> None:
    """Both are marked, and first."""
    work = scenario.begin()
    for path in (link, file):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / link).symlink_to(leads)
    (work / "one").symlink_to("docs/ed")
    (work / file).write_text("")
    (work / "beside").mkdir()
    (work / "beside/file").write_text("")
    marked = [one.path for one in scenario.comparison().changes if one.runs]
    assert {link, file} <= set(marked)
    assert "beside/file" not in marked or leads == "."
    assert [one.path for one in scenario.comparison().changes][: len(marked)] == marked


def test_a_link_of_the_workspace_does_so_too(scenario: ReviewScenario) -> None:
    """The agent changes only what is at the link's target; a link that it deletes has no target."""
    (scenario.workspace / "docs").mkdir()
    for name in (".vscode", ".husky"):
        (scenario.workspace / name).symlink_to("docs" if name == ".vscode" else "hidden")
    work = scenario.begin()
    (work / "docs/tasks.json").write_text("")
    (work / ".husky").unlink()
    (work / "hidden").mkdir()
    (work / "hidden/pre-commit").write_text("")
    assert {one.path for one in scenario.comparison().changes if one.runs} == {
        "docs/tasks.json",
        ".husky",
    }


def test_links_without_end_cost_no_time_without_end() -> None:
    """Beyond what is worth trying everything that may be led to is marked."""
    links = {f"{number}/workflows": ".." for number in range(3_000)}
    changes = [
        FileChange(path=f"file{number}", what="added", old=None, new=NEW) for number in range(2_000)
    ]
    began = time.process_time()
    marked = mark_autorun(changes, links)
    assert time.process_time() - began < 60
    assert marked[-1].runs
