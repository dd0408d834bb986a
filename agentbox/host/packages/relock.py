"""`agentbox lock`: replaces the lock, or reports why it no longer matches."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentbox.core.progress import Progress
from agentbox.host.packages.changes import LockChanges, diff_locks
from agentbox.host.packages.lock_inputs import read_lock
from agentbox.host.packages.pins import select_pins
from agentbox.host.packages.resolve import resolve
from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.inputs import LockInputs
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.lockfile.writer import serialize_lock

LOCK_NAME = "agentbox.lock"
_HINT = "Run `agentbox lock`."


@dataclass(frozen=True)
class LockUpdate:
    """The new lock, its changes, and whether the file was written (an equal file is left alone)."""

    lock: Lock
    changes: LockChanges
    written: bool


def relock(
    path: Path,
    inputs: LockInputs,
    *,
    cache: Path,
    progress: Progress,
    upgrade: Iterable[str] | None = None,
    base: Path | None = None,
) -> LockUpdate:
    """Resolves and replaces the lock at `path` by rename; after an error the old one is unchanged.

    `upgrade`: None keeps every locked version that is still served, an empty list keeps none, names
    upgrade those. Without a lock at `path` the versions are those of `base`. Raises ResolveError
    (exit 5), FetchError (exit 4), PrerequisiteError (exit 3).
    """
    old = _read_if_valid(path)
    previous = old if old is not None or base is None else _read_if_valid(base)
    new = resolve(inputs, select_pins(previous, upgrade), cache, progress)
    new = replace(new, mcp={} if previous is None else previous.mcp)
    data = serialize_lock(new)
    if parse_lock(data) != new:
        raise AssertionError("the written lock does not read back")
    written = not path.exists() or path.read_bytes() != data
    if written:
        replace_file(path, data)
    return LockUpdate(new, diff_locks(previous, new), written)


def pin_skills(path: Path, inputs: LockInputs, *, base: Path | None = None) -> str:
    """Updates the digests of skills in the lock at `path` if they are all that differs; offline.
    Returns what has changed, "" for nothing. Without a lock at `path` it starts from `base`."""
    lock = _read_if_valid(path)
    if lock is None and base is not None:
        lock = _read_if_valid(base)
    if lock is None or lock.inputs != inputs.digest():
        return ""
    if changed := inputs.skill_difference(lock):
        replace_file(path, serialize_lock(replace(lock, skills=inputs.skills)))
    return changed


def pin_tools(path: Path, server: str, digests: Mapping[str, str], *, base: Path) -> None:
    """Replaces the pinned definitions of one MCP server in the lock at `path`, which starts from
    `base` if it does not exist. `digests`: `sha256:<hex>` by tool. Raises LockError.
    """
    lock = parse_lock(path if path.exists() else base)
    others = {name: value for name, value in lock.mcp.items() if name.partition("/")[0] != server}
    pinned = {f"{server}/{tool}": value for tool, value in digests.items()}
    replace_file(path, serialize_lock(replace(lock, mcp={**others, **pinned})))


def check_inputs(path: Path, inputs: LockInputs) -> Lock:
    """Return the lock at `path` after checking that it was made for these inputs; offline.

    Raises LockError (exit 5) if it is missing, unreadable, or made for other inputs, with the
    difference.
    """
    if not path.exists():
        raise LockError(f"cannot build without {LOCK_NAME}: not found beside the manifest", _HINT)
    lock = read_lock(path)
    if difference := inputs.difference(lock):
        raise LockError(
            f"cannot build from {LOCK_NAME}: it was made for other packages ({difference})", _HINT
        )
    return lock


def require_system(lock: Lock, system: str) -> None:
    """Raises LockError (exit 5) for a system that the lock does not cover."""
    if not lock.covers(system):
        covered = ", ".join(lock.systems)
        raise LockError(
            f"cannot build for {system}: the lock covers {covered}",
            "Add it to image.systems and run `agentbox lock`.",
        )


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file atomically, readable by everyone; root gives it to the owner of the
    directory.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        if os.geteuid() == 0:
            owner = path.parent.stat()
            os.chown(name, owner.st_uid, owner.st_gid)
        Path(name).rename(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read_if_valid(path: Path) -> Lock | None:
    """Return the existing lock; None if there is none or it is unreadable."""
    try:
        return read_lock(path)
    except LockError:
        return None
