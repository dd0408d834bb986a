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
from pathlib import Path, PurePosixPath
from typing import Final

from agentbox.agents.review.copying import GIT, Copier

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
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(workspace: Path, branch: Path, found: list[str], name: str, email: str) -> tuple[str, ...]:
    """`found`: paths of the workspace named .git. The folders of objects that the branch borrows, to be granted for
    reading. What is no repository by itself (a linked worktree, a pointer out of the workspace) is left out: git then
    finds none there. `name` and `email` of who commits, where the repository names nobody. Raises OSError."""
    borrowed: dict[str, None] = {}
    for path in found:
        place = _place(workspace, path)
        if place is None:
            continue
        with ExitStack() as opened:
            source = _open_below(workspace, place, opened)
            if source is None or not _is_repository(source):
                continue
            objects = _objects(workspace, workspace / place / "objects")
            own = branch / place
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            _fill(source, own, objects)
            depth = "" if place == path else os.path.relpath(branch / PurePosixPath(path).parent, own)
            (own / "config").write_text(_config(_text(source, "config"), name, email, depth), encoding="utf-8")
            if place != path:
                (branch / path).write_text(
                    f"gitdir: {os.path.relpath(own, (branch / path).parent)}\n", encoding="utf-8"
                )
            borrowed |= dict.fromkeys(objects)
    return tuple(borrowed)


def _place(workspace: Path, path: str) -> str | None:
    """Where the repository of that .git lies, below the workspace: itself, or what a file named .git points at."""
    told = (workspace / path).lstat()
    if stat.S_ISDIR(told.st_mode):
        return path
    if not stat.S_ISREG(told.st_mode) or told.st_size > _MOST_TEXT:
        return None
    word, _, leads = (workspace / path).read_text(encoding="utf-8", errors="surrogateescape").strip().partition(" ")
    if word != "gitdir:" or not leads or leads.startswith("/"):
        return None
    meant = os.path.normpath(PurePosixPath(path).parent / leads)
    return meant if not meant.startswith("..") and GIT in PurePosixPath(meant).parts else None


def _open_below(workspace: Path, place: str, opened: ExitStack) -> int | None:
    """A descriptor of that folder, reached over no link. None when it is no such folder."""
    here = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    opened.callback(os.close, here)
    for part in PurePosixPath(place).parts:
        try:
            here = os.open(part, _OPEN | os.O_DIRECTORY, dir_fd=here)
        except OSError:
            return None
        opened.callback(os.close, here)
    return here


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


def _objects(workspace: Path, first: Path) -> list[str]:
    """The folder of objects, and those that it borrows from in turn, as far as they lie in the workspace."""
    found, ahead = [str(first)], [first]
    for _ in range(_DEEPEST):
        ahead = [one for folder in ahead for one in _alternates(folder) if str(one) not in found]
        ahead = [one for one in ahead if one.is_relative_to(workspace) and one.is_dir() and one.resolve() == one]
        found += map(str, ahead)
    return found


def _alternates(folder: Path) -> Iterator[Path]:
    with suppress(OSError), ExitStack() as opened:
        place = os.open(folder / "info", _OPEN | os.O_DIRECTORY)
        opened.callback(os.close, place)
        for line in _text(place, "alternates").splitlines():
            if line and not line.startswith("#"):
                yield Path(os.path.normpath(folder / line))


def _fill(source: int, own: Path, objects: list[str]) -> None:
    for folder in ("info", "objects/info", "objects/pack", "refs"):
        (own / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.scandir(source) as entries:
        shared = [one.name for one in entries if _SHARED_INDEX.fullmatch(one.name)]
    for name in (*_FILES, *shared):
        data = _bytes(source, name)
        if data is not None:
            (own / name).write_bytes(data)
    for name in _FOLDERS:
        _copy_folder(source, name, own)
    (own / "objects/info/alternates").write_text("".join(f"{one}\n" for one in objects), "utf-8", "surrogateescape")


def _copy_folder(source: int, name: str, own: Path) -> None:
    with ExitStack() as opened:
        try:
            old = os.open(name, _OPEN | os.O_DIRECTORY, dir_fd=source)
        except OSError:
            return
        opened.callback(os.close, old)
        (own / name).mkdir(mode=0o700, exist_ok=True)
        new = os.open(own / name, _OPEN | os.O_DIRECTORY)
        opened.callback(os.close, new)
        Copier(old, new).copy()


def _bytes(source: int, name: str, most: int = 1 << 30) -> bytes | None:
    """None when that is no file that can be read, or is larger. Follows no link in the last place."""
    try:
        descriptor = os.open(name, _OPEN | os.O_NONBLOCK, dir_fd=source)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        told = os.fstat(descriptor)
        return stream.read() if stat.S_ISREG(told.st_mode) and told.st_size <= most else None


def _text(source: int, name: str) -> str:
    return (_bytes(source, name, _MOST_TEXT) or b"").decode("utf-8", "surrogateescape")


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
