"""A snapshot that leaves its repository: as its archive, as the tar of head and archive that a box
sends, or as the plain tar that was staged.
"""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.archive.strict_tar import open_strict
from agentbox.backup.errors import damaged
from agentbox.backup.files import open_file
from agentbox.backup.heads import ID
from agentbox.backup.repository import OpenedMember

_BLOCK: Final = 1 << 18
_TYPES: Final = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


def file_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file. Raises OSError."""
    with open_file(path) as file:
        yield from iter(lambda: file.read(_BLOCK), b"")


def import_export(stream: IO[bytes], folder: Path) -> str:
    """Unpacks the tar of head and archive that a box sends into `folder`, which becomes a
    repository of one snapshot; returns its id. Raises BackupError (exit 1) if it is something else;
    OSError.
    """
    names: list[str] = []
    try:
        with open_strict(stream) as tar:
            for info in tar:
                body = tar.extractfile(info) if info.isreg() else None
                if body is None or len(names) == 2 or not ID.fullmatch(info.name):
                    raise damaged("this file", "it is not an export of a snapshot")
                with (folder / info.name).open("xb") as file:
                    while chunk := body.read(_BLOCK):
                        file.write(chunk)
                names.append(info.name)
    except tarfile.TarError as error:
        raise damaged("this file", f"it is not an export of a snapshot ({error})") from error
    if len(names) != 2 or not names[0].endswith(".json"):
        raise damaged("this file", "it is not an export of a snapshot")
    id = names[0].removesuffix(".json")
    return ArchiveRepository(folder, None).get(id).id


def plain_chunks(members: Iterator[OpenedMember]) -> Iterator[bytes]:
    """The members as a plain tar. Raises what the members raise."""
    for member in members:
        info = tarfile.TarInfo(member.path)
        info.type, info.mode, info.linkname = _TYPES[member.kind], member.mode, member.target
        info.mtime, info.size = member.mtime_ns // 1_000_000_000, member.size
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        if member.body is not None:
            while chunk := member.body.read(_BLOCK):
                yield chunk
            yield bytes(-member.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)
