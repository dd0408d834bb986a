"""What the sealed copy has beyond the tip's tree, and a commit of it.

Only the agent's own changes matter: paths that its review names, and paths that its commits
changed. Files are read by their bytes alone, without filters or conversions.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from agentbox.agents.review.commits.confined import trees
from agentbox.agents.review.commits.confined.git import Git, TooMuch
from agentbox.agents.review.commits.confined.take import MAX_BYTES
from agentbox.agents.review.commits.confined.trees import LINK, SUBMODULE
from agentbox.core.linux.openat2 import open_beneath

_FILE, _PROGRAM = 0o100644, 0o100755
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class RestPath:
    """A path whose sealed state differs from the tip's tree. `mode` is 0 if it is not there."""

    path: str
    what: str
    mode: int


class SealedFiles:
    """Files of the sealed copy. A context manager."""

    def __init__(self, sealed: str, object_format: str) -> None:
        self._sealed, self._format, self._read = sealed, object_format, 0

    def __enter__(self) -> "SealedFiles":
        self._root = os.open(self._sealed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def mode_unless(self, path: str, expected: tuple[int, str]) -> int | None:
        """The mode as git would store it, 0 if there is neither a file nor a link; None if it and
        the blob id are as expected. Line breaks of Windows count as others: git may have
        converted them (`core.autocrlf`). Raises TooMuch, OSError."""
        mode, data = self.content(path)
        if not mode:
            return None if not expected[0] else 0
        same = self._blob_id(data) == expected[1] or (
            b"\r\n" in data and self._blob_id(data.replace(b"\r\n", b"\n")) == expected[1]
        )
        return None if mode == expected[0] and same else mode

    def content(self, path: str) -> tuple[int, bytes]:
        """Mode and bytes. Raises TooMuch, OSError."""
        parent, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
        try:
            directory = open_beneath(self._root, parent)
        except (FileNotFoundError, NotADirectoryError):
            return 0, b""
        try:
            try:
                stats = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return 0, b""
            if stat.S_ISLNK(stats.st_mode):
                return LINK, os.fsencode(os.readlink(name, dir_fd=directory))
            if not stat.S_ISREG(stats.st_mode):
                return 0, b""
            self._read += stats.st_size
            if self._read > 4 * MAX_BYTES:
                raise TooMuch(f"more than {4 * MAX_BYTES >> 20} MiB in changed files")
            mode = _PROGRAM if stats.st_mode & stat.S_IXUSR else _FILE
            with os.fdopen(os.open(name, _FLAGS, dir_fd=directory), "rb") as stream:
                return mode, stream.read(stats.st_size)
        finally:
            os.close(directory)

    def _blob_id(self, data: bytes) -> str:
        digest = hashlib.new(self._format, usedforsecurity=False)
        digest.update(b"blob %d\0" % len(data))
        digest.update(data)
        return digest.hexdigest()


def compare(
    git: Git,
    sealed: SealedFiles,
    changes: Mapping[str, Any],
    *,
    tip_tree: str,
    start_tree: str,
) -> tuple[list[RestPath], list[str]]:
    """The differences, and new files that git does not track, which may be ignored. `changes`:
    paths of the review. Raises GitFailed, TooMuch, OSError."""
    tip = {path: (mode, object_id) for path, mode, object_id in trees.tree_files(git, tip_tree)}
    (rows,) = trees.differences(git, [(start_tree, tip_tree)])
    tracked_at_start = {row.path for row in rows if row.old_mode}
    rest, untracked = list[RestPath](), list[str]()
    for path in sorted({row.path for row in rows} | set(changes)):
        expected = tip.get(path, (0, ""))
        if expected[0] == SUBMODULE:
            continue  # said as a submodule link
        mode = sealed.mode_unless(path, expected)
        if mode is None:
            continue
        if expected[0] == 0 and path not in tracked_at_start:
            untracked.append(path)
            continue
        what = "added" if not expected[0] else "deleted" if not mode else "modified"
        rest.append(RestPath(path, what, mode))
    return rest, untracked


def ignored(git: Git, sealed: str, paths: list[str]) -> frozenset[str]:
    """Those of the paths that git ignores by the `.gitignore` files of the sealed copy."""
    data = b"".join(b"./%s\0" % os.fsencode(path) for path in paths)  # `:` would begin a pattern
    output = git.run(
        *(f"--work-tree={sealed}", "-c", "core.bare=false", "check-ignore"),
        *("--no-index", "-z", "-v", "-n", "--stdin"),
        data=data,
        accepted=(1,),  # none is ignored
    )
    words = output.split(b"\0")[:-1]
    found = zip(words[2::4], words[3::4], strict=True)
    return frozenset(
        os.fsdecode(path.removeprefix(b"./"))
        for pattern, path in found
        if pattern and not pattern.startswith(b"!")
    )


def commit(
    git: Git,
    sealed: SealedFiles,
    rest: Iterable[RestPath],
    *,
    tip: str,
    ref: str,
    author: str,
    when: int,
) -> str:
    """Make a commit of the differences on top of the tip; its id. Raises GitFailed, TooMuch,
    OSError."""
    stream = b"".join(_stream(sealed, rest, tip=tip, ref=ref, author=author, when=when))
    git.run("fast-import", "--quiet", "--force", data=stream)
    return git.run("rev-parse", "--verify", ref).decode("ascii").strip()


def _stream(
    sealed: SealedFiles, rest: Iterable[RestPath], *, tip: str, ref: str, author: str, when: int
) -> Iterator[bytes]:
    """Format: git-fast-import(1)."""
    message = b"Changes that the agent did not commit\n"
    yield f"commit {ref}\ncommitter {author} {when} +0000\n".encode()
    yield b"data %d\n%sfrom %s\n" % (len(message), message, tip.encode("ascii"))
    ordered = sorted(rest, key=lambda one: bool(one.mode))  # a file may become a directory
    size = 0
    for one in ordered:
        name = _quoted(one.path)
        if not one.mode:
            yield b"D " + name + b"\n"
            continue
        mode, data = sealed.content(one.path)
        size += len(data)
        if size > MAX_BYTES:
            raise TooMuch(f"more than {MAX_BYTES >> 20} MiB in files without a commit")
        yield b"M %o inline %s\ndata %d\n" % (mode, name, len(data))
        yield data + b"\n"


def _quoted(path: str) -> bytes:
    """As a string of C, with every byte as an escape that is not a letter, a digit or plain."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-"
    escaped = (bytes([byte]) if byte in plain else b"\\%03o" % byte for byte in os.fsencode(path))
    return b'"' + b"".join(escaped) + b'"'
