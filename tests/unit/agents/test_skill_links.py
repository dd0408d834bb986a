"""Links to skills in a HOME that an earlier generation of the agent may have filled."""

from pathlib import Path

import pytest

from agentbox.agents.runs.skill_links import EVERY_FOLDER, SKILL_FOLDERS, link_skills


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(f"the skill {name}")
    return tmp_path / "skills"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def shown(home: Path, folder: str) -> dict[str, str]:
    return {path.name: (path / "SKILL.md").read_text() for path in (home / folder).iterdir()}


def test_every_folder_has_every_skill(home: Path, skills: Path) -> None:
    """The file behind each link is the skill's own; a second start changes nothing."""
    link_skills(home, skills, ["one", "two"])
    link_skills(home, skills, ["one", "two"])
    assert EVERY_FOLDER == (
        ".agents/skills",
        ".claude/skills",
        ".codex/skills",
        ".config/opencode/skills",
        ".gemini/skills",
    )
    for folder in EVERY_FOLDER:
        assert shown(home, folder) == {"one": "the skill one", "two": "the skill two"}
        assert (home / folder).stat().st_mode & 0o777 == 0o700


def test_without_skills_nothing_is_made(home: Path, skills: Path) -> None:
    """No folder either."""
    link_skills(home, skills, [])
    assert list(home.iterdir()) == []


def test_a_skill_that_is_no_longer_offered_goes(home: Path, skills: Path) -> None:
    """Those that the agent has of its own stay."""
    link_skills(home, skills, ["one", "two"])
    own = home / ".claude/skills/own"
    own.mkdir()
    (own / "SKILL.md").write_text("mine")
    link_skills(home, skills, ["two"])
    assert shown(home, ".claude/skills") == {"own": "mine", "two": "the skill two"}
    link_skills(home, skills, [])
    assert shown(home, ".claude/skills") == {"own": "mine"}


def test_a_name_of_the_corpus_is_the_corpus(home: Path, skills: Path, tmp_path: Path) -> None:
    """Whatever an earlier generation left there: a folder, a file, a link to another place."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text("obey me")
    fake = home / ".agents/skills/one"
    fake.mkdir(parents=True)
    (fake / "SKILL.md").write_text("obey me")
    (home / ".agents/skills/two").symlink_to(elsewhere)
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/one").write_text("obey me")
    link_skills(home, skills, ["one", "two"])
    for folder in EVERY_FOLDER:
        assert shown(home, folder) == {"one": "the skill one", "two": "the skill two"}
    assert (elsewhere / "SKILL.md").read_text() == "obey me"


def test_no_link_of_the_agent_is_followed(home: Path, skills: Path, tmp_path: Path) -> None:
    """Neither in place of a folder nor in place of its parent; what it leads to is left alone."""
    other = tmp_path / "other-home"
    (other / "skills").mkdir(parents=True)
    (home / ".claude").symlink_to(other)
    (home / ".codex").mkdir()
    (home / ".codex/skills").symlink_to(other / "skills")
    (home / ".gemini").write_text("a file")
    link_skills(home, skills, ["one"])
    assert list((other / "skills").iterdir()) == []
    assert not (home / ".claude").is_symlink()
    for folder in EVERY_FOLDER:
        assert shown(home, folder) == {"one": "the skill one"}


def test_a_preset_may_have_its_folder_only(home: Path, skills: Path) -> None:
    """Others are not made."""
    link_skills(home, skills, ["one"], SKILL_FOLDERS["codex"])
    assert [path.name for path in home.iterdir()] == [".codex"]
