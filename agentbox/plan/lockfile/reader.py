"""Bytes -> Lock. Rejects everything that the writer would not write."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.model import (
    LOCK_VERSION,
    BuildTools,
    DebEntry,
    Lock,
    LockEntry,
    NpmEntry,
    WheelEntry,
)
from agentbox.plan.lockfile.names import store_name
from agentbox.plan.lockfile.writer import serialize_lock

_HINT = "Run `agentbox lock` to write it again."
_HEX = set("0123456789abcdef")
E = TypeVar("E", bound=LockEntry)


def parse_lock(source: Path | bytes, name: str = "agentbox.lock") -> Lock:
    """The lock in a file or in bytes. Raises LockError (exit 5) if it is missing, is not valid
    TOML, has unknown keys, an entry without digest, two files with one name, or is not written as
    by `serialize_lock`.
    """
    data = _bytes(source)
    label = str(source) if isinstance(source, Path) else name
    try:
        document = tomllib.loads(data.decode())
        lock = _lock(document)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise LockError(f"cannot read {label}: {_describe(error)}", _HINT) from error
    if serialize_lock(lock) != data:
        raise LockError(
            f"cannot read {label}: it was edited by hand or written by another version", _HINT
        )
    return lock


def _bytes(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except FileNotFoundError as error:
        raise LockError(
            f"cannot read {source}: no such file", "Run `agentbox lock` to make it."
        ) from error
    except OSError as error:
        raise LockError(
            f"cannot read {source}: {error.strerror}", "Fix its permissions."
        ) from error


def _describe(error: Exception) -> str:
    return f"missing key {error}" if isinstance(error, KeyError) else str(error)


def _lock(document: Mapping[str, Any]) -> Lock:
    if document["version"] != LOCK_VERSION:
        raise ValueError(
            f"version {document['version']} is not supported (this agentbox supports "
            f"{LOCK_VERSION})"
        )
    lock = Lock(
        inputs=_digest(document["inputs"], "inputs"),
        source=document["source"],
        suite=document["suite"],
        python=document["python"],
        systems=tuple(document["systems"]),
        features=tuple(document["features"]),
        seed={arch: _seed(table) for arch, table in document.get("seed", {}).items()},
        debian={arch: _rows(DebEntry, table) for arch, table in document.get("debian", {}).items()},
        wheels=_rows(WheelEntry, document["wheels"]),
        npm=_rows(NpmEntry, document["npm"]),
        skills={
            name: _digest(value, f"skills.{name}")
            for name, value in document.get("skills", {}).items()
        },
        mcp={
            name: _digest(value, f"mcp.{name}") for name, value in document.get("mcp", {}).items()
        },
    )
    _check_unique(lock)
    return lock


def _seed(table: Mapping[str, Any]) -> BuildTools:
    return BuildTools(files=_rows(LockEntry, table), nar=_digest(table["nar"], "nar"))


def _rows(kind: type[E], table: Mapping[str, Any]) -> tuple[E, ...]:
    return tuple(_row(kind, row) for row in table["files"])


def _row(kind: type[E], row: Mapping[str, Any]) -> E:
    by_name = {item.name: item for item in fields(kind)}
    if unknown := sorted(set(row) - set(by_name)):
        raise ValueError(f"unknown key {unknown[0]}")
    values: dict[str, Any] = {}
    for key, item in by_name.items():
        if key not in row and item.default is MISSING:
            raise ValueError(f"{row.get('name', 'an entry')} has no {key}")
        if key in row:
            values[key] = tuple(row[key]) if isinstance(row[key], list) else row[key]
    entry = kind(**values)
    _check_pinned(entry)
    return entry


def _digest(value: str, key: str) -> str:
    if not value.startswith("sha256:") or not _is_sha256(value.removeprefix("sha256:")):
        raise ValueError(f"{key} is not a SHA-256")
    return value


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and set(text) <= _HEX


def _check_pinned(entry: LockEntry) -> None:
    if not _is_sha256(entry.sha256):
        raise ValueError(f"{entry.name} has no SHA-256")
    if not isinstance(entry.size, int) or entry.size < 1:
        raise ValueError(f"{entry.name} has no size")
    if entry.file != store_name(entry.file) or not entry.file:
        raise ValueError(f"{entry.name} has a file name that the store refuses: {entry.file}")


def _check_unique(lock: Lock) -> None:
    digest_of: dict[str, str] = {}
    for _, rows in lock.tables():
        names = [row.file for row in rows]
        if len(set(names)) != len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"duplicate row {duplicate}")
        for row in rows:
            if digest_of.setdefault(row.file, row.sha256) != row.sha256:
                raise ValueError(f"two different files are named {row.file}")
