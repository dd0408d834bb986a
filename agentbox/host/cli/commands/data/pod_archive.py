"""Objects of pods as a tar (POSIX.1-2001 pax): names are paths, the type of each is in the record
`AGENTBOX.content_type`, box and contract version in the global header."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from agentbox.contracts.pods import CONTRACT_VERSION
from agentbox.contracts.routes.request_line import InvalidUrl
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.transfer import Conflict, Counts, conflict_error

if TYPE_CHECKING:
    from agentbox.client import BoxClient

_TYPE = "AGENTBOX.content_type"
_BLOCK = 1 << 18
_OCTETS = "application/octet-stream"


def archive(client: BoxClient, objects: Iterable[Any]) -> Iterator[bytes]:
    """The tar in chunks. An object that was removed in the meantime is left out."""
    from agentbox.client import ApiError

    box = client.call("meta")["name"]
    header = {"AGENTBOX.kind": "pods", "AGENTBOX.contract_version": CONTRACT_VERSION}
    header |= {"AGENTBOX.box": box}
    yield tarfile.TarInfo.create_pax_global_header(header)
    for meta in objects:
        try:
            with client.pods.open(meta["path"]) as (found, chunks):
                info = tarfile.TarInfo(meta["path"])
                info.size = found.size or 0
                info.mtime = int(found.modified_at.timestamp())
                info.pax_headers = {_TYPE: found.content_type}
                yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
                yield from _exactly(chunks, info.size, meta["path"])
                yield bytes(-info.size % tarfile.BLOCKSIZE)
        except ApiError as error:
            if error.status != 404:
                raise
    yield bytes(2 * tarfile.BLOCKSIZE)


def unpack(client: BoxClient, stream: IO[bytes], *, dry_run: bool, on_conflict: Conflict) -> Counts:
    """Stores each file of the tar. Directories are passed over: a container exists while something
    is in it. Raises AgentboxError: exit 2 for another kind of member or a damaged tar, exit 7 at a
    conflict. Members are numbered from 1."""
    counts, number = Counts(), 0
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for number, member in enumerate(tar, 1):
                if member.isdir():
                    continue
                body = tar.extractfile(member) if member.isreg() else None
                if body is None:
                    raise _member_error(number, f"{member.name} is no regular file")
                counts[_import_object(client, number, member, body, dry_run, on_conflict)] += 1
    except InvalidUrl as error:
        raise _member_error(number, str(error)) from error
    except tarfile.TarError as error:
        raise _member_error(number + 1, f"not a tar ({error})") from error
    return counts


def _import_object(
    client: BoxClient,
    number: int,
    member: tarfile.TarInfo,
    body: IO[bytes],
    dry_run: bool,
    on_conflict: Conflict,
) -> str:
    """What was done with it, or would be."""
    kind = member.pax_headers.get(_TYPE, _OCTETS)
    with _spooled(body) as data:
        stored = _stored_digest(client, member.name, kind)
        result = "new"
        if stored is not None:
            if stored == _digest(_blocks(data)):
                return "unchanged"
            if on_conflict == "skip":
                return "skipped"
            if on_conflict == "fail":
                raise conflict_error(number, member.name)
            result = "replaced"
        if not dry_run:
            _write(client, number, member.name, kind, data, is_new=result == "new")
    return result


def _write(
    client: BoxClient, number: int, path: str, kind: str, data: IO[bytes], *, is_new: bool
) -> None:
    from agentbox.client import ApiError

    data.seek(0)
    try:
        client.pods.write(
            path, _blocks(data), content_type=kind, if_none_match="*" if is_new else None
        )
    except ApiError as error:
        if error.status == 412:
            raise conflict_error(number, path) from error
        raise


def _stored_digest(client: BoxClient, path: str, kind: str) -> bytes | None:
    """SHA-256 of the stored object; None without one, b"" for one of another type."""
    from agentbox.client import ApiError

    try:
        with client.pods.open(path) as (meta, chunks):
            digest = _digest(chunks)
            return digest if meta.content_type == kind else b""
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _spooled(body: IO[bytes]) -> IO[bytes]:
    """The member as a file that can be read twice; up to 1 MiB in memory."""
    import shutil
    import tempfile

    file = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115 - closed by the caller
    shutil.copyfileobj(body, file, _BLOCK)
    file.seek(0)
    return file


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(_BLOCK), b"")


def _digest(chunks: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def _exactly(chunks: Iterable[bytes], size: int, path: str) -> Iterator[bytes]:
    written = 0
    for chunk in chunks:
        written += len(chunk)
        yield chunk
    if written != size:
        raise AgentboxError(f"cannot export {path}: {written} of {size} bytes arrived")


def _member_error(number: int, reason: str) -> AgentboxError:
    return AgentboxError(
        f"cannot import member {number}: {reason}",
        "Members before it are imported.",
        exit_code=ExitCode.USAGE,
    )
