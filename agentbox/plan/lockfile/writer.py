"""Lock -> bytes, canonical: fixed key order, one line per file, sorted by (name, version, file),
LF.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from agentbox.plan.lockfile.model import Lock, LockEntry

_HEAD = ("version", "inputs", "source", "suite", "python", "systems", "features")


def serialize_lock(lock: Lock) -> bytes:
    """The bytes of `agentbox.lock`. `parse_lock(serialize_lock(x)) == x` and vice versa."""
    return ("\n".join(_lines(lock)) + "\n").encode()


def _lines(lock: Lock) -> Iterator[str]:
    for key in _HEAD:
        yield f"{key} = {_value(getattr(lock, key))}"
    for arch, seed in sorted(lock.seed.items()):
        yield from _table(f"seed.{arch}", seed.files)
        yield f"nar = {_value(seed.nar)}"
    for arch, rows in sorted(lock.debian.items()):
        yield from _table(f"debian.{arch}", rows)
    yield from _table("wheels", lock.wheels)
    yield from _table("npm", lock.npm)
    if lock.skills:
        yield ""
        yield "[skills]"
        for name, digest in sorted(lock.skills.items()):
            yield f"{name} = {_value(digest)}"
    if lock.mcp:
        yield ""
        yield "[mcp]"
        for name, digest in sorted(lock.mcp.items()):
            yield f"{_value(name)} = {_value(digest)}"


def _table(name: str, rows: Iterable[LockEntry]) -> Iterator[str]:
    ordered = sorted(rows, key=lambda row: (row.name, row.version, row.file))
    yield ""
    yield f"[{name}]"
    if not ordered:
        yield "files = []"
        return
    yield "files = ["
    for row in ordered:
        yield f"  {_row(row)},"
    yield "]"


def _row(row: LockEntry) -> str:
    pairs = (f"{item.name} = {_value(getattr(row, item.name))}" for item in fields(row))
    return "{ " + ", ".join(pairs) + " }"


def _value(value: str | int | Sequence[str]) -> str:
    # A JSON string of printable ASCII is a TOML basic string; names in a lock contain nothing else.
    return json.dumps(value if isinstance(value, str | int) else list(value))
