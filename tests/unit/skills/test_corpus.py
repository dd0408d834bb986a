"""The skills corpus: what every skill says of itself, what an agent pays for being told, and how a
manifest selects. Their commands run in `tests/api/test_skill_commands.py`."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.plans import plan_of
from tokenizers import Tokenizer

from agentbox.manifest.features.loader import load_features
from agentbox.manifest.skills.corpus import (
    corpus_dir,
    select_skills,
    shipped_folders,
    skill_names,
)
from agentbox.manifest.skills.skill import load

SKILLS = sorted(shipped_folders())
OF_FEATURES = {
    name: feature.name for feature in load_features().values() for name in feature.skills
}
MAX_TOKENS = 100


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """That of the memory slot."""
    (folder,) = find_spec("wordllama").submodule_search_locations  # type: ignore[union-attr, misc]
    return Tokenizer.from_file(f"{folder}/tokenizers/l2_supercat_tokenizer_config.json")


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_says_what_it_is_for(name: str, tokenizer: Tokenizer) -> None:
    """What it does and when to use it, in at most 100 tokens; short enough to be
    read completely."""
    skill = load(shipped_folders()[name])
    about = str(skill.front_matter["description"])
    assert "Use it" in about
    told = json.dumps({"name": name, "description": about})
    assert len(tokenizer.encode(told, add_special_tokens=False).ids) <= MAX_TOKENS
    text = (shipped_folders()[name] / "SKILL.md").read_text()
    assert len(text.splitlines()) < 80


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_of_a_feature_names_it(name: str) -> None:
    """In `compatibility`, by the key that enables it; others need nothing."""
    needs = str(load(shipped_folders()[name]).front_matter.get("compatibility", ""))
    assert bool(needs) == (name in OF_FEATURES)
    if needs:
        gate = load_features()[OF_FEATURES[name]].gate
        assert gate is not None
        assert f"of the feature {gate.key}." in needs


def test_names() -> None:
    """One per directory, and every one that a feature names."""
    assert {path.name for path in corpus_dir().iterdir()} == skill_names() == set(SKILLS)
    assert set(OF_FEATURES) <= skill_names()
    assert len(skill_names() - set(OF_FEATURES)) >= 24


def test_selection() -> None:
    """`include` without `exclude`; both accept globs."""
    names = {"git-commits", "git-history", "search-code"}
    assert select_skills(["*"], [], names) == ("git-commits", "git-history", "search-code")
    assert select_skills(["git-*"], ["*-history"], names) == ("git-commits",)
    assert select_skills([], [], names) == ()


def test_a_skill_of_a_feature_comes_with_it() -> None:
    """Without its program it would only mislead; also when it is included by name."""
    assert set(plan_of().skills) == skill_names() - set(OF_FEATURES)
    only = '[skills.corpus]\ninclude = ["pandoc-documents", "git-commits"]\n'
    assert plan_of(only).skills == ("git-commits",)
    assert plan_of(f"{only}[skills.docs]\npandoc = true\n").skills == (
        "git-commits",
        "pandoc-documents",
    )


def test_digests_of_a_plan() -> None:
    """Of the selected skills, as their files are."""
    plan = plan_of('[skills.corpus]\ninclude = ["git-*"]\n')
    assert plan.digests.skills == {
        name: load(shipped_folders()[name]).digest for name in plan.skills
    }


def test_a_digest_is_of_paths_bits_and_bytes(tmp_path: Path) -> None:
    """Each of the three changes it; the order of creation does not."""
    directory = tmp_path / "one"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text("---\nname: one\ndescription: One.\n---\n# One\n")
    script = directory / "scripts/run.sh"
    script.write_text("#!/bin/sh\n")
    seen = [load(directory).digest]
    script.chmod(0o755)
    seen.append(load(directory).digest)
    script.write_text("#!/bin/sh\ntrue\n")
    seen.append(load(directory).digest)
    script.rename(directory / "scripts/go.sh")
    seen.append(load(directory).digest)
    assert len(set(seen)) == 4
