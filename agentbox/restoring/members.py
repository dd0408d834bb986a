"""Members of a snapshot, written into empty volumes. No path leaves its volume and no link is
followed: each directory is opened by its name, from the descriptor of its parent.
"""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from agentbox.backup.repository import OpenedMember
from agentbox.contracts.backups import CUT_FILE, SnapshotMember
from agentbox.core.files.member_names import member_name
from agentbox.core.paths import Paths
from agentbox.restoring.allowed import MAX_PLAN, PLAN, has_secrets, is_allowed, is_skipped
from agentbox.restoring.errors import damaged, no_room

LINKED: Final = frozenset({"branches"})
"""Volumes in which agents make links: only there a link is restored."""
MAX_CUT: Final = 1 << 20  # bytes of `cut.json`
_CHUNK: Final = 1 << 20
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_ELSEWHERE: Final = frozenset({"box", "external", "workspace"})


@dataclass(frozen=True, slots=True)
class Unpacked:
    """`cut` has the bytes of `cut.json`; `left` are members that belong to no volume."""

    cut: bytes
    files: int
    size: int
    left: tuple[str, ...]


def volume_roots(paths: Paths) -> dict[str, Path]:
    """The folder of each first part of a member's path."""
    return {"state": paths.state, "branches": paths.branches}


def unpack(
    snapshot: str,
    members: Iterable[OpenedMember],
    roots: Mapping[str, Path],
    expected: Mapping[str, SnapshotMember] | None,
    room: int = sys.maxsize,
) -> Unpacked:
    """Writes every member below the root of its volume. `expected` are the files that the head
    names, None without a head; `room` is how many bytes may be written. Raises AgentboxError (exit
    1) that names the first damaged member, exit 3 without room; OSError.
    """
    cut, left, size, seen, secrets = b"", list[str](), 0, set[str](), False
    folders: list[tuple[Path, int]] = []
    for member in members:
        parts = _parts(snapshot, member.path)
        body = _Checked(member)
        seen.add(member_name(member.path))
        if member.kind == "file":
            _require_known(snapshot, member, expected)
        if member.path == CUT_FILE and member.kind == "file":
            cut = body.read_all(MAX_CUT)
        elif member.path == PLAN and member.kind == "file":
            secrets = has_secrets(body.read_all(MAX_PLAN))
        elif parts[0] not in roots or is_skipped(member.path):
            body.skip()
            if parts[0] not in {*roots, *_READ_ELSEWHERE}:
                raise damaged(snapshot, member.path, "belongs to no volume of a box")
            if parts[0] in _READ_ELSEWHERE - {"box"} and member.kind == "file":
                left.append(member.path)
        elif member.kind == "link" and parts[0] not in LINKED:
            raise damaged(snapshot, member.path, "is a link, which this volume never has")
        elif parts[0] == "state" and not is_allowed(member.path, member.kind, secrets=secrets):
            raise damaged(snapshot, member.path, "is not what a backup takes of a box")
        elif size + member.size > room:
            raise no_room(snapshot, size + member.size, room)
        else:
            _write(snapshot, member, roots[parts[0]], parts[1:], body)
            if member.kind == "folder":
                folders.append((roots[parts[0]].joinpath(*parts[1:]), member.mtime_ns))
        size += body.size
        if member.kind == "file":
            _compare(snapshot, member, body, expected)
    if expected is not None and (missing := sorted(expected.keys() - seen)):
        raise damaged(snapshot, missing[0], "is missing")
    if not cut:
        raise damaged(snapshot, CUT_FILE, "is missing")
    for folder, mtime_ns in reversed(folders):  # of pods, they are when a container changed
        os.utime(folder, ns=(mtime_ns, mtime_ns), follow_symlinks=False)
    return Unpacked(cut, len(seen), size, tuple(left))


def staged_members(folder: Path) -> Iterator[OpenedMember]:
    """The members of a staging directory, in the order of their paths."""
    for path in sorted(folder.rglob("*")):
        status, name = path.lstat(), str(path.relative_to(folder))
        mode, mtime_ns = stat.S_IMODE(status.st_mode), status.st_mtime_ns
        if stat.S_ISLNK(status.st_mode):
            yield OpenedMember(name, "link", mode, mtime_ns, target=str(path.readlink()))
        elif stat.S_ISDIR(status.st_mode):
            yield OpenedMember(name, "folder", mode, mtime_ns)
        elif stat.S_ISREG(status.st_mode):
            with path.open("rb") as body:
                yield OpenedMember(name, "file", mode, mtime_ns, status.st_size, body=body)


class _Checked:
    """The body of a member, read once; `size` and `sha256` are of what was read."""

    def __init__(self, member: OpenedMember) -> None:
        self._body: IO[bytes] | None = member.body
        self._hash = hashlib.sha256()
        self.size = 0

    def chunks(self) -> Iterator[bytes]:
        while self._body is not None and (chunk := self._body.read(_CHUNK)):
            self._hash.update(chunk)
            self.size += len(chunk)
            yield chunk

    def read_all(self, most: int) -> bytes:
        """At most `most` bytes; the rest is read and thrown away."""
        kept = b""
        for chunk in self.chunks():
            kept += chunk[: most - len(kept)]
        return kept

    def skip(self) -> None:
        for _ in self.chunks():
            continue

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _parts(snapshot: str, path: str) -> tuple[str, ...]:
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise damaged(snapshot, path, "is not a path below a volume")
    return parts


def _require_known(
    snapshot: str, member: OpenedMember, expected: Mapping[str, SnapshotMember] | None
) -> None:
    """Before it is written: a body that the head does not name could fill the disk."""
    if expected is None:
        return
    known = expected.get(member_name(member.path))
    if known is None:
        raise damaged(snapshot, member.path, "is not in the head of the snapshot")
    if known.size != member.size:
        raise damaged(snapshot, member.path, "differs from its size in the head")


def _compare(
    snapshot: str,
    member: OpenedMember,
    body: _Checked,
    expected: Mapping[str, SnapshotMember] | None,
) -> None:
    if body.size != member.size:
        raise damaged(snapshot, member.path, f"has {body.size} bytes, not {member.size}")
    if expected is not None and expected[member_name(member.path)].sha256 != body.sha256:
        raise damaged(snapshot, member.path, "differs from its SHA-256 in the head")


def _write(
    snapshot: str, member: OpenedMember, root: Path, parts: tuple[str, ...], body: _Checked
) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not parts:
        return
    try:
        descriptor = _open_parent(root, parts[:-1])
        try:
            _write_entry(member, descriptor, parts[-1], body)
        finally:
            os.close(descriptor)
    except FileExistsError:
        raise damaged(snapshot, member.path, "is there twice") from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise damaged(snapshot, member.path, "is below what is not a folder") from None


def _open_parent(root: Path, parts: tuple[str, ...]) -> int:
    descriptor = os.open(root, _DIRECTORY)
    for part in parts:
        try:
            child = _open_or_make(descriptor, part)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _open_or_make(parent: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        os.mkdir(name, 0o700, dir_fd=parent)
        return os.open(name, _DIRECTORY, dir_fd=parent)


def _write_entry(member: OpenedMember, parent: int, name: str, body: _Checked) -> None:
    times = (member.mtime_ns, member.mtime_ns)
    if member.kind == "link":
        os.symlink(member.target, name, dir_fd=parent)
        os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
        return
    mode = member.mode & 0o777
    if member.kind == "folder":
        descriptor = _open_or_make(parent, name)
        with _Fd(descriptor):
            os.fchmod(descriptor, mode | 0o700)
        return
    descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=parent)
    with _Fd(descriptor):
        for chunk in body.chunks():
            view = memoryview(chunk)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode | 0o600)
        os.utime(descriptor, ns=times)


class _Fd:
    """Closes a descriptor at the end of a block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)
