"""Heads of snapshots (`<id>.json`) and the record of a repository (`repository.json`), both JCS
with a digest of themselves. Heads are a chain: each has the SHA-256 of the one before it.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agentbox.backup.files import NotRegular, read_bounded
from agentbox.contracts.backups import HEAD_FORMAT, Cut, Snapshot, SnapshotMember
from agentbox.core.canonical import sha256_hex
from agentbox.core.jcs import jcs
from agentbox.core.records.wire import Record, record
from agentbox.core.slot_errors import AdapterError

RECORD_FILE: Final = "repository.json"
RESTIC_ID: Final = re.compile("[0-9a-f]{64}")  # in the place of a name of an archive
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class HeadDamaged(Exception):
    """A head, or the record, is not what was written."""


class NewerFormat(HeadDamaged):
    """It was written by a later release."""


@record
class RepositoryRecord(Record):
    """`pruned`: SHA-256 of removed heads that a present one names; `newest`: of the last one
    written.
    """

    format: int = HEAD_FORMAT
    pruned: tuple[str, ...] = ()
    newest: str = ""
    digest: str = ""


def new_head(
    cut: Cut,
    *,
    engine: Any,
    archive: str,
    size: int,
    sha256: str,
    encrypt: Any,
    recipients: int,
    previous: str,
    members: Iterable[SnapshotMember],
) -> Snapshot:
    return Snapshot(
        engine=engine,
        id=cut.id,
        time=cut.time,
        tag=cut.tag,
        seq=cut.seq,
        epoch=cut.epoch,
        box=cut.box,
        release=cut.release,
        plan_digest=cut.plan_digest,
        encrypt=encrypt,
        recipients=recipients,
        archive=archive,
        size=size,
        sha256=sha256,
        previous=previous,
        partial=cut.partial,
        changed=cut.changed,
        stores=cut.stores,
        counts=cut.counts,
        members=tuple(members),
    )


def encode(document: Record) -> bytes:
    """The bytes of a head or of the record, with its digest."""
    wire = document.to_wire()
    wire["digest"] = _digest_of(wire)
    return jcs(wire)


def decode_head(data: bytes, id: str) -> Snapshot:
    """Raises HeadDamaged; NewerFormat for a format beyond this release's."""
    wire = _checked(data)
    try:
        head = Snapshot.from_wire(wire)
    except AdapterError as error:
        raise HeadDamaged(f"is not a head ({error})") from error
    if head.id != id:
        raise HeadDamaged(f"is the head of {head.id}")
    if head.engine == "restic":
        is_own = RESTIC_ID.fullmatch(head.archive) is not None and head.encrypt == "restic"
    else:
        is_own = head.archive == archive_name(id, head.encrypt) and head.encrypt != "restic"
    if not is_own:
        raise HeadDamaged(f"names an archive that is not its own: {head.archive!r}")
    return head


def archive_name(id: str, encrypt: str) -> str:
    """Of the archive beside the head. `encrypt` is age or none."""
    return f"{id}.tar.zst.age" if encrypt == "age" else f"{id}.tar.zst"


def read_head(folder: Path, id: str) -> tuple[Snapshot, str]:
    """The head and the SHA-256 of its bytes. Raises HeadDamaged, OSError."""
    try:
        data = read_bounded(folder / f"{id}.json")
    except NotRegular as error:
        raise HeadDamaged(error.why) from error
    return decode_head(data, id), sha256_hex(data)


def read_record(folder: Path) -> RepositoryRecord | None:
    """None without one. Raises HeadDamaged, OSError."""
    try:
        data = read_bounded(folder / RECORD_FILE)
    except FileNotFoundError:
        return None
    except NotRegular as error:
        raise HeadDamaged(error.why) from error
    try:
        return RepositoryRecord.from_wire(_checked(data))
    except AdapterError as error:
        raise HeadDamaged(f"is not the record of a repository ({error})") from error


def _checked(data: bytes) -> dict[str, Any]:
    try:
        wire = json.loads(data)
        canonical = jcs(wire)
    except (ValueError, RecursionError) as error:
        raise HeadDamaged("is not JSON") from error
    if not isinstance(wire, dict) or canonical != data:
        raise HeadDamaged("is not in canonical form")
    if isinstance(wire.get("format"), int) and wire["format"] > HEAD_FORMAT:
        raise NewerFormat(
            f"has format {wire['format']}, and this release reads up to {HEAD_FORMAT}"
        )
    if wire.get("digest") != _digest_of(wire):
        raise HeadDamaged("differs from its own digest")
    return wire


def _digest_of(wire: dict[str, Any]) -> str:
    return sha256_hex(jcs({name: value for name, value in wire.items() if name != "digest"}))
