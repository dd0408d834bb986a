"""Skills and other instructions of a repository are listed first in a review."""

import pytest

from agentbox.agents.review.autorun import autorun_reason


@pytest.mark.parametrize(
    "path",
    [
        ".agents/skills/git-commits/SKILL.md",
        ".agents/skills/own/scripts/run.sh",
        "sub/.AGENTS/skills/own/notes.md",
        ".claude/skills/own/references/more.md",
        ".codex/skills/own/SKILL.md",
        ".gemini/skills/own/a.py",
        ".opencode/skills/own/a.py",
        ".config/opencode/skills/own/a.py",
        ".qwen/skills/own/a.py",
        "anywhere/skill.md",
    ],
)
def test_a_skill_of_the_repository_is_listed_first(path: str) -> None:
    """Every file of its folder, however the name is spelt."""
    assert autorun_reason(path) == "an agent takes instructions from it"


def test_other_files_are_not() -> None:
    """A folder that is only named alike."""
    assert autorun_reason("agents/skills/notes.md") == ""
