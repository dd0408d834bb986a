"""The members of a snapshot as a tar on a pipe, from the host, which has the identity, to the
program that makes the state and never gets it. The first entry has the options.
"""

import json
import os
import tarfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import IO, Final

from agentbox.backup.archive.strict_tar import open_strict
from agentbox.backup.repository import OpenedMember
from agentbox.core.records.wire import to_json
from agentbox.core.slot_errors import ValidationError
from agentbox.restoring.errors import damaged
from agentbox.restoring.restore import RestoreOptions

OPTIONS: Final = ".agentbox-restore.json"
_MTIME: Final = "AGENTBOX.mtime_ns"
_TYPES: Final = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


def send(pipe: IO[bytes], options: RestoreOptions, members: Iterable[OpenedMember]) -> None:
    """Writes all of it. Raises OSError, such as BrokenPipeError once the reader has failed; what
    the members raise.
    """
    with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        text = to_json(options).encode()
        entry = tarfile.TarInfo(OPTIONS)
        entry.size = len(text)
        tar.addfile(entry, BytesIO(text))
        for member in members:
            entry = tarfile.TarInfo(member.path)
            entry.type, entry.mode = _TYPES[member.kind], member.mode
            entry.pax_headers = {_MTIME: str(member.mtime_ns)}
            entry.size = member.size if member.kind == "file" else 0
            entry.linkname = member.target
            tar.addfile(entry, member.body)


def receive(pipe: IO[bytes]) -> tuple[RestoreOptions, Iterator[OpenedMember]]:
    """The options, and the members as they arrive. Raises AgentboxError (exit 1) for a tar that
    ends early.
    """
    try:
        tar = open_strict(pipe)  # read to its end by the members
        first = tar.next()
        body = None if first is None or first.name != OPTIONS else tar.extractfile(first)
        if body is None:
            raise damaged("a snapshot", "its stream", "has no options")
        options = RestoreOptions.from_wire(json.loads(body.read()))
    except (ValueError, ValidationError, tarfile.TarError) as error:
        raise damaged("a snapshot", "its stream", f"has no options: {error}") from error
    return options, _members(options.snapshot, tar)


def _members(snapshot: str, tar: tarfile.TarFile) -> Iterator[OpenedMember]:
    try:
        while (entry := tar.next()) is not None:
            yield _member(snapshot, tar, entry)
            tar.members.clear()  # type: ignore[attr-defined]
    except (tarfile.TarError, ValueError) as error:
        raise damaged(snapshot, "its stream", f"cannot be read: {error}") from error


def _member(snapshot: str, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> OpenedMember:
    mtime = entry.pax_headers.get(_MTIME, "0")
    mtime_ns = int(mtime) if mtime.isascii() and mtime.isdigit() else 0
    if entry.isreg():
        body = tar.extractfile(entry)
        return OpenedMember(entry.name, "file", entry.mode, mtime_ns, entry.size, body=body)
    if entry.isdir():
        return OpenedMember(entry.name, "folder", entry.mode, mtime_ns)
    if entry.issym():
        return OpenedMember(entry.name, "link", entry.mode, mtime_ns, target=entry.linkname)
    raise damaged(snapshot, os.fsencode(entry.name).decode(errors="replace"), "is a special file")
