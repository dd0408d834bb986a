"""One skill: the files of its folder, its digest, and what its front matter says.

Standard library only: Nix renders the catalogue of an image with this.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentbox.core.canonical import canonical_json, digest, sha256_hex
from agentbox.core.errors import AgentboxError
from agentbox.core.frozen import frozen
from agentbox.manifest.skills.front_matter import Document, FrontMatterError, parse

SKILL_FILE: Final = "SKILL.md"
MAX_FILES: Final = 64
MAX_FOLDERS: Final = 64  # in it, at any depth; bounds the depth too
MAX_BYTES: Final = 1 << 20  # of all files of a skill
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SkillError(AgentboxError):
    """A folder that is no skill."""


@frozen
class SkillFile:
    """One file. `path` is relative to the folder; `sha256` bare hex."""

    path: str
    executable: bool
    data: bytes

    @property
    def sha256(self) -> str:
        return sha256_hex(self.data)


@frozen
class Skill:
    """`front_matter` is that of SKILL.md. Its `allowed-tools` is shown and grants nothing."""

    name: str
    front_matter: Mapping[str, str | Mapping[str, str]]
    files: tuple[SkillFile, ...]

    @property
    def digest(self) -> str:
        return files_digest(self.files)

    def catalogue_row(self) -> dict[str, Any]:
        """The row of `skills.json`, as `plan.skill_catalogue` reads it."""
        return {
            "name": self.name,
            "front_matter": dict(self.front_matter),
            "digest": self.digest,
            "files": [
                {
                    "path": file.path,
                    "executable": file.executable,
                    "size": len(file.data),
                    "sha256": file.sha256,
                }
                for file in self.files
            ],
        }


def files_digest(files: tuple[SkillFile, ...]) -> str:
    """`sha256:<hex>` over the canonical JSON of the sorted (path, executable, SHA-256)."""
    return rows_digest((file.path, file.executable, file.sha256) for file in files)


def rows_digest(rows: Iterator[tuple[str, bool, str]]) -> str:
    """The same of rows, in any order."""
    return digest(canonical_json(sorted([path, bit, code] for path, bit, code in rows)))


def read_files(directory: Path) -> tuple[SkillFile, ...]:
    """The files of a skill, sorted by path. Follows no link. Raises SkillError for a link, a
    device, too many files, folders or bytes, or a folder that cannot be read."""
    files: list[SkillFile] = []
    size = 0
    if directory.is_symlink():
        raise _refused(directory, "its folder is a link")
    try:
        for path in _regular_files(directory):
            if len(files) == MAX_FILES:
                raise _refused(directory, f"it has more than {MAX_FILES} files")
            file = _read(directory, path, MAX_BYTES - size)
            size += len(file.data)
            files.append(file)
    except OSError as error:
        raise _refused(directory, f"{error.filename}: {error.strerror}") from error
    return tuple(sorted(files, key=lambda file: file.path))


def load(directory: Path) -> Skill:
    """A skill that `check_skill` accepts. Raises SkillError."""
    files = read_files(directory)
    document = read_document(directory, files)
    return Skill(name=directory.name, front_matter=document.fields, files=files)


def read_document(directory: Path, files: tuple[SkillFile, ...]) -> Document:
    """Its SKILL.md. Raises SkillError."""
    file = next((file for file in files if file.path == SKILL_FILE), None)
    if file is None:
        raise _refused(directory, f"it has no {SKILL_FILE}")
    try:
        return parse(file.data.decode())
    except UnicodeDecodeError as error:
        raise _refused(directory, f"{SKILL_FILE} is not UTF-8") from error
    except FrontMatterError as error:
        raise _refused(directory, f"{SKILL_FILE}:{error.line}: {error.reason}") from error


def _regular_files(root: Path) -> Iterator[Path]:
    """Raises SkillError for anything that is neither file nor folder, for more entries in a folder
    than files are allowed, and for more folders than MAX_FOLDERS, at any depth."""
    pending, folders = [root], 0
    while pending:
        directory = pending.pop()
        with os.scandir(directory) as entries:
            rows = [entry for entry, _ in zip(entries, range(MAX_FILES + 2), strict=False)]
        if len(rows) > MAX_FILES + 1:
            raise _refused(root, f"it has more than {MAX_FILES} files")
        for entry in sorted(rows, key=lambda row: row.name):
            path = Path(entry.path)
            if entry.is_symlink():
                raise _refused(root, f"{path.relative_to(root).as_posix()} is a link")
            if entry.is_dir(follow_symlinks=False):
                folders += 1
                if folders > MAX_FOLDERS:
                    raise _refused(root, f"it has more than {MAX_FOLDERS} folders")
                pending.append(path)
            elif entry.is_file(follow_symlinks=False):
                yield path
            else:
                raise _refused(root, f"{path.relative_to(root).as_posix()} is not a regular file")


def _read(root: Path, path: Path, room: int) -> SkillFile:
    name = path.relative_to(root).as_posix()
    descriptor = os.open(path, _OPEN)
    with os.fdopen(descriptor, "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise _refused(root, f"{name} is not a regular file")
        data = stream.read(room + 1)
    if len(data) > room:
        raise _refused(root, f"its files have more than {MAX_BYTES} bytes")
    return SkillFile(path=name, executable=bool(mode & stat.S_IXUSR), data=data)


def _refused(directory: Path, reason: str) -> SkillError:
    return SkillError(
        f"cannot use skill {directory.name}: {reason}",
        "Run `agentbox skills check` on its folder.",
    )
