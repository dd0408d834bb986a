"""Reads an archive: from its bytes to members, and to files below a folder."""

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from agentbox.backup.archive.streams import ArchiveDamaged, decompressed, decrypted
from agentbox.backup.archive.strict_tar import MAX_MEMBERS, open_strict
from agentbox.backup.repository import Fault, OpenedMember
from agentbox.contracts.backups import SnapshotMember
from agentbox.core.files.member_names import member_name

_BLOCK: Final = 1 << 18


@contextmanager
def opened(source: IO[bytes], identities: Sequence[Any] | None) -> Iterator[Iterator[OpenedMember]]:
    """The members of an archive; `identities` is None for one that is not encrypted. Raises
    ArchiveDamaged, NoMatchingIdentity, OSError; all bytes were authenticated when the block ends.
    """
    plain = nullcontext(source) if identities is None else decrypted(source, identities)
    with plain as compressed_tar, decompressed(compressed_tar) as tar, opened_tar(tar) as members:
        yield members


@contextmanager
def opened_tar(tar: IO[bytes]) -> Iterator[Iterator[OpenedMember]]:
    """The members of a plain tar, read to its end. Raises ArchiveDamaged, OSError."""
    try:
        yield tar_members(tar)
    except tarfile.TarError as error:  # of a body
        raise ArchiveDamaged(f"its content is not a whole tar ({error})") from error
    while tar.read(_BLOCK):
        pass


def tar_members(stream: IO[bytes]) -> Iterator[OpenedMember]:
    """Raises ArchiveDamaged for what is not a tar of a snapshot: other kinds of entries, paths that
    leave the folder or come twice.
    """
    seen: set[str] = set()  # files and links, and folders that were named
    above: set[str] = set()  # folders of these
    ended: set[str] = set()  # files and links
    try:
        with open_strict(stream) as tar:
            for number, info in enumerate(tar):
                if number >= MAX_MEMBERS:
                    raise ArchiveDamaged(f"it has more than {MAX_MEMBERS} entries")
                member = _member(tar, info)
                if member is None:
                    continue
                if member.path in seen:
                    raise ArchiveDamaged(f"{member_name(member.path)} is in it twice")
                parents = {str(parent) for parent in PurePosixPath(member.path).parents}
                seen.add(member.path)
                above |= parents
                if member.kind != "folder":
                    ended.add(member.path)
                if parents & ended or (member.kind != "folder" and member.path in above):
                    raise ArchiveDamaged(
                        f"{member_name(member.path)} is below a file, or above one"
                    )
                yield member
                tar.members.clear()  # type: ignore[attr-defined]
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise ArchiveDamaged(f"its content is not a tar ({error})") from error


def _member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> OpenedMember | None:
    """None for the folder itself, which `tar c .` begins with."""
    path = info.name.removeprefix("./").rstrip("/")
    if path in ("", ".") and info.isdir():
        return None
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or not parts or "\0" in path:
        raise ArchiveDamaged(f"{member_name(path)} leads out of the folder")
    kind, body = _kind(info), None
    if kind == "file":
        body = tar.extractfile(info)
    return OpenedMember(
        path="/".join(parts),
        kind=kind,
        mode=info.mode & 0o700,
        mtime_ns=_nanoseconds(info),
        size=info.size if kind == "file" else 0,
        target=info.linkname if kind == "link" else "",
        body=body,
    )


def _kind(info: tarfile.TarInfo) -> Any:
    if info.isreg():
        return "file"
    if info.isdir():
        return "folder"
    if info.issym():
        return "link"
    raise ArchiveDamaged(f"{member_name(info.name)} is not a file, a folder or a link")


def _nanoseconds(info: tarfile.TarInfo) -> int:
    """Exactly what the header says: a float loses the last digits."""
    whole, _, fraction = info.pax_headers.get("mtime", str(int(info.mtime))).partition(".")
    if not whole.isdecimal() or not (fraction or "0").isdecimal():
        return int(info.mtime) * 1_000_000_000
    return int(whole) * 1_000_000_000 + int(fraction[:9].ljust(9, "0"))


def compare(
    members: Iterator[OpenedMember], expected: Sequence[SnapshotMember]
) -> tuple[Fault, ...]:
    """Reads each file; returns which differ from a head, are missing or are not listed there."""
    return tuple(_compared(members, expected, lambda _member, chunks: _drain(chunks)))


def _compared(
    members: Iterator[OpenedMember], expected: Sequence[SnapshotMember], use: Any
) -> Iterator[Fault]:
    remaining = {row.path: row for row in expected}
    for member in members:
        digest = hashlib.sha256()
        if member.kind != "file":
            use(member, iter(()))
            continue
        name = member_name(member.path)
        row = remaining.pop(name, None)
        if row is None:
            yield Fault(name, "is not listed in the head")
            continue
        if row.size != member.size:  # before it fills the disk
            yield Fault(name, f"differs: it has {member.size} bytes, and {row.size} in the head")
            continue
        use(member, _hashed(member, digest))
        if (row.size, row.sha256) != (member.size, digest.hexdigest()):
            yield Fault(name, "differs from its hash in the head")
    for name in sorted(remaining):
        yield Fault(name, "is listed in the head and missing in the archive")


def unpack(
    members: Iterator[OpenedMember], expected: Sequence[SnapshotMember], target: Path
) -> tuple[Fault, ...]:
    """Writes the members below `target`, an empty folder, and compares them with a head. Links are
    made last, so that no path leads through one. Raises OSError, ArchiveDamaged.
    """
    links: list[OpenedMember] = []
    folders: list[OpenedMember] = []

    def write(member: OpenedMember, chunks: Iterator[bytes]) -> None:
        if member.kind == "link":
            links.append(member)
        elif member.kind == "folder":
            (target / member.path).mkdir(mode=0o700, parents=True, exist_ok=True)
            folders.append(member)
        else:
            _write_file(target / member.path, member, chunks)

    faults = tuple(_compared(members, expected, write))
    for member in links:
        path = target / member.path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.symlink_to(member.target)
        os.utime(path, ns=(member.mtime_ns, member.mtime_ns), follow_symlinks=False)
    for member in reversed(folders):
        path = target / member.path
        path.chmod(member.mode)
        os.utime(path, ns=(member.mtime_ns, member.mtime_ns))
    return faults


def _write_file(path: Path, member: OpenedMember, chunks: Iterator[bytes]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, member.mode), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.utime(file.fileno(), ns=(member.mtime_ns, member.mtime_ns))


def _hashed(member: OpenedMember, digest: Any) -> Iterator[bytes]:
    if member.body is not None:
        while chunk := member.body.read(_BLOCK):
            digest.update(chunk)
            yield chunk


def _drain(chunks: Iterator[bytes]) -> None:
    for _chunk in chunks:
        pass
