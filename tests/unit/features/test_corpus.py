"""The skills corpus: the metadata of every skill, that its examples work in the box, and how a
manifest selects."""

import re
from pathlib import Path

import pytest
import yaml

from agentbox.manifest.features.loader import load_features
from agentbox.manifest.skills.corpus import corpus_dir, select_skills, skill_names

SKILLS = sorted(corpus_dir().glob("*/SKILL.md"))
# What the packages of the features core and build bring besides `commands`: coreutils, findutils, sed, mawk, the shell.
BASICS = {"awk", "cat", "cd", "comm", "df", "echo", "for", "head", "join", "ls", "pwd", "sed", "sh", "sort", "timeout", "wc", "xargs"}  # fmt: skip


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_a_skill_says_what_it_is_for(path: Path) -> None:
    """Front matter with its directory's name and a description that says when to use it; short
    enough to be read completely."""
    text = path.read_text()
    front, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    about = yaml.safe_load(front)
    assert set(about) == {"name", "description"}
    assert about["name"] == path.parent.name
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,63}", about["name"])
    assert 40 < len(about["description"]) <= 1024
    assert "Use it" in about["description"] or "Read it" in about["description"]
    assert body.startswith("# ")
    assert len(text.splitlines()) < 80


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_its_examples_need_nothing_but_the_box(path: Path) -> None:
    """Every command of its examples is in every image."""
    features = load_features()
    there = BASICS | set(features["core"].commands) | set(features["build"].commands)
    for example in re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL):
        for line in example.splitlines():
            if line.strip():
                assert line.split()[0] in there, line


def test_names() -> None:
    """One per directory."""
    assert skill_names() == {path.parent.name for path in SKILLS}
    assert len(SKILLS) >= 5
    assert {path.name for path in corpus_dir().iterdir()} == skill_names()


def test_selection() -> None:
    """`include` without `exclude`; both accept globs."""
    names = {"git-commits", "git-history", "search-code"}
    assert select_skills(["*"], [], names) == ("git-commits", "git-history", "search-code")
    assert select_skills(["git-*"], ["*-history"], names) == ("git-commits",)
    assert select_skills([], [], names) == ()
