"""The skills of a box: those of `config/skills`, and those of the folders in
`skills.corpus.paths`.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from agentbox.core.data_files import config_dir
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.manifest.features.model import Feature
from agentbox.manifest.skills.skill import Skill, SkillError, files_digest, load, read_files
from agentbox.policy.patterns import globs


def corpus_dir() -> Path:
    """The directory `config/skills`."""
    return config_dir() / "skills"


@cache
def skill_names() -> frozenset[str]:
    """The names of the skills that agentbox brings."""
    return frozenset(path.parent.name for path in corpus_dir().glob("*/SKILL.md"))


def shipped_folders() -> dict[str, Path]:
    """Their folders by name."""
    return {name: corpus_dir() / name for name in sorted(skill_names())}


def skill_folders(directories: Iterable[Path] = ()) -> dict[str, Path]:
    """The folders of all skills by name; each folder in these directories is one. Raises SkillError
    for two of the same name, and for a directory that cannot be read."""
    found = shipped_folders()
    for directory in directories:
        for path in _folders_in(directory):
            if path.name in found:
                raise SkillError(
                    f"cannot use skill {path.name}: {_origin(found[path.name])} has the same name",
                    "Rename its folder, and name in its SKILL.md.",
                    exit_code=ExitCode.BAD,
                )
            found[path.name] = path
    return dict(sorted(found.items()))


def manifest_directories(paths: Iterable[str], manifest: Path) -> tuple[Path, ...]:
    """`skills.corpus.paths` of the manifest at that place."""
    return tuple(manifest.absolute().parent / path for path in paths)


def digests(folders: Mapping[str, Path]) -> dict[str, str]:
    """The digest of each skill. Raises SkillError."""
    return {name: files_digest(read_files(path)) for name, path in sorted(folders.items())}


@cache
def shipped_digests() -> Mapping[str, str]:
    """The digests of the skills that agentbox brings."""
    return digests(shipped_folders())


def load_skills(names: Iterable[str], folders: Mapping[str, Path]) -> tuple[Skill, ...]:
    """These skills. Raises SkillError for one that is missing or bad."""
    skills = []
    for name in names:
        if name not in folders:
            raise SkillError(f"cannot use skill {name}: its folder is gone", "Run `agentbox lock`.")
        skills.append(load(folders[name]))
    return tuple(skills)


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


def usable_skills(
    names: Iterable[str], features: Mapping[str, Feature], enabled: Collection[str]
) -> tuple[str, ...]:
    """Those without the skills of features that are not enabled, whose programs are missing."""
    missing = {
        name
        for feature in features.values()
        if feature.name not in enabled
        for name in feature.skills
    }
    return tuple(name for name in names if name not in missing)


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(globs.matches(pattern, name) for pattern in patterns)


def _folders_in(directory: Path) -> list[Path]:
    try:
        rows = sorted(directory.iterdir())
    except OSError as error:
        raise AgentboxError(
            f"cannot read the skills in {directory}: {error.strerror}",
            "Make the folder, or take it out of skills.corpus.paths.",
            exit_code=ExitCode.BAD,
        ) from error
    return [path for path in rows if path.is_dir() and not path.name.startswith(".")]


def _origin(path: Path) -> str:
    return "a skill of agentbox" if path.parent == corpus_dir() else str(path)
