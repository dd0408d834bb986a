"""A `.git` of a branch's own: it borrows the objects of the workspace's repository, and has its index and refs as a copy.

Nothing of it runs here, and nothing that git would run by itself is taken over: no hook, no filter, no alias, no path.
Names and formats: gitrepository-layout(5), git-config(1).
"""

import configparser
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import PurePosixPath
from typing import Final

from agentbox.agents.review.copying import GIT, Copier
from agentbox.core.linux.openat2 import open_beneath

_FILES: Final = (
    *("HEAD", "index", "packed-refs", "shallow", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG", "info/exclude", "info/attributes", "info/sparse-checkout"),
)
_FOLDERS: Final = ("refs", "reftable")
_SHARED_INDEX: Final = re.compile(r"sharedindex\.[0-9a-f]{40,64}")
_KEPT: Final[Mapping[str, frozenset[str]]] = {
    "core.filemode": frozenset({"true", "false"}),
    "core.symlinks": frozenset({"true", "false"}),
    "core.ignorecase": frozenset({"true", "false"}),
    "core.autocrlf": frozenset({"true", "false", "input"}),
    "core.eol": frozenset({"lf", "crlf", "native"}),
    "core.sparsecheckout": frozenset({"true", "false"}),
    "core.sparsecheckoutcone": frozenset({"true", "false"}),
    "core.repositoryformatversion": frozenset({"0", "1"}),
    "extensions.objectformat": frozenset({"sha1", "sha256"}),
    "extensions.refstorage": frozenset({"files", "reftable"}),
}
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f\"\\]{1,200}")
_MOST_TEXT: Final = 1 << 20  # bytes of a config, alternates or .git file
_DEEPEST: Final = 5  # alternates of alternates, as git


def make(workspace: int, at: str, branch: int, found: list[str], name: str, email: str) -> tuple[str, ...]:
    """`workspace`, which lies `at` that path, and `branch` are descriptors, below which no link is followed. `found`: paths
    of the workspace named .git. The folders of objects that the branch borrows, to be granted for reading. What is no repository by itself (a linked worktree, a pointer out of the workspace) is left out: git then
    finds none there. `name` and `email` of who commits, where the repository names nobody. Raises OSError."""
    borrowed: dict[str, None] = {}
    for path in found:
        place = _place(workspace, path)
        if place is None:
            continue
        with ExitStack() as opened:
            source = _folder(workspace, place, opened)
            if source is None or not _is_repository(source):
                continue
            objects = [str(PurePosixPath(at, one)) for one in _objects(workspace, at, f"{place}/objects")]
            own = _made(branch, place, opened)
            _fill(source, own, objects, opened)
            above = PurePosixPath(path).parent
            depth = "" if place == path else os.path.relpath(f"/{above}", f"/{place}")
            _write(own, "config", _config(_text(source, "config"), name, email, depth))
            if place != path:
                beside = _made(branch, str(above), opened)
                _write(beside, GIT, f"gitdir: {os.path.relpath(f'/{place}', f'/{above}')}\n")
            borrowed |= dict.fromkeys(objects)
    return tuple(borrowed)


def _place(workspace: int, path: str) -> str | None:
    """Where the repository of that .git lies, below the workspace: itself, or what a file named .git points at."""
    with ExitStack() as opened:
        if _folder(workspace, path, opened) is not None:
            return path
    word, _, leads = _text(workspace, path).strip().partition(" ")
    if word != "gitdir:" or not leads or leads.startswith("/"):
        return None
    meant = os.path.normpath(PurePosixPath(path).parent / leads)
    return meant if not meant.startswith("..") and GIT in PurePosixPath(meant).parts else None


def _folder(root: int, path: str, opened: ExitStack) -> int | None:
    """A descriptor of that folder, reached over no link. None when it is no such folder."""
    try:
        found = open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    opened.callback(os.close, found)
    return found


def _made(root: int, path: str, opened: ExitStack) -> int:
    """The same, of a folder that is made where it is missing. Raises OSError for anything else in its place."""
    for part in PurePosixPath(path).parts:
        with suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=root)
        root = open_beneath(root, part, os.O_RDONLY | os.O_DIRECTORY)
        opened.callback(os.close, root)
    return root


def _write(folder: int, name: str, data: bytes | str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "wb") as stream:
        stream.write(os.fsencode(data))


def _is_repository(source: int) -> bool:
    kinds = {"HEAD": stat.S_ISREG, "objects": stat.S_ISDIR, "refs": stat.S_ISDIR}
    try:
        fits = all(is_it(os.stat(one, dir_fd=source, follow_symlinks=False).st_mode) for one, is_it in kinds.items())
    except OSError:
        return False
    return fits and not _exists(source, "commondir")


def _exists(source: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=source, follow_symlinks=False)
    except OSError:
        return False
    return True


def _objects(workspace: int, at: str, first: str) -> list[str]:
    """The folder of objects, and those that it borrows from in turn, as far as they lie in the workspace: paths there."""
    found, ahead = [first], [first]
    for _ in range(_DEEPEST):
        ahead = [one for folder in ahead for one in _alternates(workspace, at, folder) if one not in found]
        with ExitStack() as opened:
            ahead = [one for one in ahead if _folder(workspace, one, opened) is not None]
        found += ahead
    return found


def _alternates(workspace: int, at: str, folder: str) -> Iterator[str]:
    for line in _text(workspace, f"{folder}/info/alternates").splitlines():
        if line and not line.startswith("#"):
            meant = PurePosixPath(os.path.normpath(PurePosixPath(at, folder, line)))
            if meant.is_relative_to(at):
                yield str(meant.relative_to(at))


def _fill(source: int, own: int, objects: list[str], opened: ExitStack) -> None:
    info, borrowed, _, _ = (_made(own, folder, opened) for folder in ("info", "objects/info", "objects/pack", "refs"))
    with os.scandir(source) as entries:
        shared = [one.name for one in entries if _SHARED_INDEX.fullmatch(one.name)]
    for name in (*_FILES, *shared):
        data = _bytes(source, name)
        if data is not None:
            _write(info if name.startswith("info/") else own, PurePosixPath(name).name, data)
    for name in _FOLDERS:
        if (old := _folder(source, name, opened)) is not None:
            Copier(old, _made(own, name, opened)).copy()
    _write(borrowed, "alternates", "".join(f"{one}\n" for one in objects))


def _bytes(source: int, path: str, most: int = 1 << 30) -> bytes | None:
    """None when that is no file that can be read, or is larger, or when a link leads there."""
    try:
        descriptor = open_beneath(source, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        told = os.fstat(descriptor)
        return stream.read() if stat.S_ISREG(told.st_mode) and told.st_size <= most else None


def _text(source: int, path: str) -> str:
    return (_bytes(source, path, _MOST_TEXT) or b"").decode("utf-8", "surrogateescape")


def _config(theirs: str, name: str, email: str, worktree: str) -> str:
    """The few settings without which git would read index or objects wrong, who commits, and that the stat data of the
    index, which are those of the workspace, are compared by time and size alone."""
    values = _parsed(theirs)
    kept = {key: values[key].lower() for key, allowed in _KEPT.items() if values.get(key, "").lower() in allowed}
    core = {"bare": "false", "logallrefupdates": "true", "checkstat": "minimal", "trustctime": "false"}
    core |= {"worktree": worktree} if worktree else {}
    who = {"name": name, "email": email}
    sections: dict[str, dict[str, str]] = {"core": core, "gc": {"auto": "0"}, "user": who}
    for key, value in kept.items():
        section, _, word = key.partition(".")
        sections.setdefault(section, {})[word] = value
    for word in who:
        if _NAME.fullmatch(given := values.get(f"user.{word}", "")):
            who[word] = given
    lines = []
    for section, found in sections.items():
        lines += [f"[{section}]", *(f'\t{word} = "{value}"' for word, value in found.items())]
    return "\n".join(lines) + "\n"


def _parsed(text: str) -> Mapping[str, str]:
    """`section.key` of a config, lower case; what cannot be parsed says nothing."""
    parser = configparser.RawConfigParser(
        strict=False, allow_no_value=True, delimiters=("=",), comment_prefixes=("#", ";"), empty_lines_in_values=False
    )
    try:
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error:
        return {}
    return {
        f"{section.lower()}.{word}": (value or "true").strip().strip('"')
        for section in parser.sections()
        for word, value in parser.items(section)
    }
