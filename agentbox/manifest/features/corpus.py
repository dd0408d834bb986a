"""The skills corpus: the directories of `config/skills/`, each with a SKILL.md."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from agentbox.core.data_files import config_dir
from agentbox.policy.patterns import globs


def corpus_dir() -> Path:
    """The directory `config/skills`."""
    return config_dir() / "skills"


@cache
def skill_names() -> frozenset[str]:
    """The names of all skills."""
    return frozenset(path.parent.name for path in corpus_dir().glob("*/SKILL.md"))


def skill_files(names: Iterable[str]) -> Mapping[str, bytes]:
    """The files of these skills by path below the corpus."""
    directory = corpus_dir()
    files = (path for name in names for path in (directory / name).rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in sorted(files)}


def select_skills(
    include: Iterable[str], exclude: Iterable[str], names: Iterable[str]
) -> tuple[str, ...]:
    """The selected names, sorted: those matched by `include` and not by `exclude`."""
    included, excluded = tuple(include), tuple(exclude)
    return tuple(
        sorted(
            name
            for name in names
            if _matches_any(included, name) and not _matches_any(excluded, name)
        ),
    )


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(globs.matches(pattern, name) for pattern in patterns)
