"""Links in an agent's HOME to the skills that it is told of, where each command line agent looks.

The skills stay below `/opt/agentbox/skills`; HOME has one link for each, so that an agent can have
skills of its own beside them. In a name of the corpus the link wins over what an earlier
generation left there. A HOME is the agent's own: nothing in it is followed.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from agentbox.agents.runs import home

SKILL_FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "": (".agents/skills",),  # the convention of agentskills.io, which most of them read too
    "claude-code": (".claude/skills",),
    "codex": (".codex/skills",),
    "gemini-cli": (".gemini/skills",),
    "opencode": (".config/opencode/skills",),
}
"""Folders below HOME in which each preset of `agents.<name>.preset` looks for skills."""

EVERY_FOLDER: Final = tuple(sorted({name for row in SKILL_FOLDERS.values() for name in row}))
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def link_skills(
    home_dir: Path, skills: Path, names: Iterable[str], folders: Iterable[str] = EVERY_FOLDER
) -> None:
    """Makes `<home>/<folder>/<name>` a link to `<skills>/<name>` in each of these folders, and
    removes links to other names below `skills`. Without names no folder is made. Raises OSError."""
    wanted = sorted(names)
    for folder in folders:
        with ExitStack() as stack:
            descriptor = _open_folder(stack, home_dir, folder, create=bool(wanted))
            if descriptor is not None:
                _update(descriptor, home_dir / folder, skills, wanted)


def _open_folder(stack: ExitStack, home_dir: Path, folder: str, *, create: bool) -> int | None:
    """The folder, each part of which is made a folder of its own. None if one is missing."""
    descriptor = os.open(home_dir, _DIRECTORY)
    stack.callback(os.close, descriptor)
    for part in folder.split("/"):
        if not _is_folder(part, descriptor):
            if not create:
                return None
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=descriptor)
            os.mkdir(part, 0o700, dir_fd=descriptor)
        os.chmod(part, 0o700, dir_fd=descriptor)  # an earlier life may have closed it
        descriptor = os.open(part, _DIRECTORY, dir_fd=descriptor)
        stack.callback(os.close, descriptor)
    return descriptor


def _update(descriptor: int, folder: Path, skills: Path, wanted: list[str]) -> None:
    for name in os.listdir(descriptor):
        target = _target(name, descriptor)
        if name not in wanted and target.startswith(f"{skills}/"):
            os.unlink(name, dir_fd=descriptor)
    for name in wanted:
        target = str(skills / name)
        if _target(name, descriptor) == target:
            continue
        if _is_folder(name, descriptor):
            home.remove(folder / name)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=descriptor)
        os.symlink(target, name, dir_fd=descriptor)


def _is_folder(name: str, descriptor: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _target(name: str, descriptor: int) -> str:
    """Where a link leads; "" for anything else."""
    try:
        return os.readlink(name, dir_fd=descriptor)
    except OSError:
        return ""
