"""The sentinel: proof, written once per boot, that every required program ran. Standard library
only.

`/run/agentbox/bootstrap.done` is canonical JSON. A copy in the state volume holds the hash of the
previous copy, so that `boot history --verify` detects a boot that was altered or removed.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentbox.box.supervision.boot_event_log import STAGE
from agentbox.box.supervision.boot_record import Posture, PreviousBoot
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.files.atomic import replace, sync_directory
from agentbox.core.paths import Paths

MAX_COPIES = 20  # copies on the state volume
DIGESTS = (
    "baked_manifest",
    "closure",
    "image",
    "lock",
    "manifest",
    "plan",
    "probes",
    "seccomp",
    "supervisord",
)


@dataclass(frozen=True)
class SealedProgram:
    """A program as the seal measured it. `ready_seconds` counts from the start of PID 1; None when
    it is not required.
    """

    name: str
    pid: int
    start_ticks: int
    required: bool
    ready_seconds: float | None


@dataclass(frozen=True)
class SealedPhase:
    id: str
    ms: float
    budget_ms: int


@dataclass(frozen=True)
class Sentinel:
    """All fields of the file. `digests` has the names of `DIGESTS`, None where the box cannot know
    the value.
    """

    boot_id: str
    completed_at: str
    elapsed_seconds: float
    digests: Mapping[str, str | None]
    programs: tuple[SealedProgram, ...]
    kernel_release: str
    landlock_abi: int
    posture: Posture
    phases: tuple[SealedPhase, ...]
    previous: PreviousBoot

    def to_bytes(self) -> bytes:
        if set(self.digests) != set(DIGESTS):
            raise ValueError("a sentinel must have all digests")
        document = asdict(self)
        release, abi = document.pop("kernel_release"), document.pop("landlock_abi")
        return canonical_json(
            {
                "schema": 1,
                "agentbox.stage": STAGE,
                "kernel": {"release": release, "landlock_abi": abi},
                **document,
            }
        )


@dataclass(frozen=True)
class SentinelFile:
    """A sentinel file: its hash, and its content, empty when it is invalid."""

    sha256: str
    document: Mapping[str, Any]


def write_sentinel(paths: Paths, sentinel: Sentinel) -> str:
    """Writes `bootstrap.done` (fsync, rename, fsync of the directory), stores a copy, and returns
    `sha256:<hex>`.

    The copy is written first: a sentinel without a copy would break the chain, while a copy without
    a sentinel is an unsealed boot that the next copy still links to. Raises OSError.
    """
    data = sentinel.to_bytes()
    replace(paths.boot_copy(sentinel.boot_id), data, mode=0o400)
    temporary = paths.sentinel.with_name(f"{paths.sentinel.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o444)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.rename(paths.sentinel)
    sync_directory(paths.sentinel.parent)
    _prune(paths)
    return digest(data)


def read_sentinel(path: Path) -> SentinelFile | None:
    """None when the file is missing; an empty document when it is not a JSON object. Raises OSError
    otherwise.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        document = json.loads(data)
    except ValueError:
        document = {}
    return SentinelFile(digest(data), document if isinstance(document, dict) else {})


def sentinel_fault(
    sentinel_file: SentinelFile | None, *, boot_id: str, plan_digest: str, sha256: str | None = None
) -> str:
    """The reason why this file is not the sentinel of this boot: `missing`, `foreign`, `changed`;
    empty when it is.

    `sha256` is the hash that the journal recorded when the boot was sealed, None before that.
    """
    if sentinel_file is None:
        return "missing"
    digests = sentinel_file.document.get("digests")
    plan = digests.get("plan") if isinstance(digests, dict) else None
    if sentinel_file.document.get("boot_id") != boot_id or plan != plan_digest:
        return "foreign"
    return "changed" if sha256 is not None and sentinel_file.sha256 != sha256 else ""


def sentinel_copies(paths: Paths) -> list[Path]:
    """The stored copies, oldest first (boot ids are UUIDs of version 7, which sort by time)."""
    if not paths.boots.is_dir():
        return []
    return sorted(path for path in paths.boots.glob("*.json") if path != paths.boot_current)


def last_copy_sha256(paths: Paths) -> str | None:
    """The hash that the next sentinel must link to; None when no boot was sealed on this volume."""
    stored = sentinel_copies(paths)
    sentinel_file = read_sentinel(stored[-1]) if stored else None
    return sentinel_file.sha256 if sentinel_file else None


def broken_links(paths: Paths) -> Iterator[str]:
    """A sentence for each stored boot whose predecessor does not match its link. The predecessor of
    the oldest is gone.
    """
    predecessor: tuple[str, SentinelFile] | None = None
    for path in sentinel_copies(paths):
        sentinel_file = read_sentinel(path)
        if sentinel_file is None:
            continue
        previous = sentinel_file.document.get("previous")
        claimed = previous.get("sentinel_sha256") if isinstance(previous, dict) else None
        if sentinel_file.document.get("boot_id") != path.stem:
            yield f"boot {path.stem}: the file belongs to another boot"
        elif predecessor and claimed != predecessor[1].sha256:
            yield (
                f"boot {path.stem}: its predecessor is {claimed}, boot {predecessor[0]} is "
                f"{predecessor[1].sha256}"
            )
        predecessor = path.stem, sentinel_file


def _prune(paths: Paths) -> None:
    for path in sentinel_copies(paths)[:-MAX_COPIES]:
        path.unlink()
