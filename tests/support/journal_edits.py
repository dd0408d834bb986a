"""Changes of the files of a journal, for forgeries."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rfc8785

Attack = Callable[[Path], Any]
Lines = list[bytes]


def read_lines(directory: Path, name: str) -> Lines:
    """Return a file's lines, each with its newline."""
    return (directory / name).read_bytes().splitlines(keepends=True)


def write_lines(directory: Path, name: str, lines: Lines) -> None:
    """Write a file, whatever its mode."""
    if (directory / name).exists():
        (directory / name).chmod(0o600)
    (directory / name).write_bytes(b"".join(lines))


def rehashed(line: bytes, **changes: Any) -> bytes:
    """Return a record with other members and a matching hash."""
    record: dict[str, Any] = {**json.loads(line), **changes}
    body = {name: item for name, item in record.items() if name not in ("hash", "prev_hash")}
    record["hash"] = hashlib.sha256(record["prev_hash"].encode() + rfc8785.dumps(body)).hexdigest()
    text: bytes = rfc8785.dumps(record)
    return text + b"\n"


def rechained(lines: Lines, index: int, **changes: Any) -> Lines:
    """Return lines with one record changed and all later ones chained again."""
    result = [*lines[:index], rehashed(lines[index], **changes)]
    for line in lines[index + 1 :]:
        result.append(rehashed(line, prev_hash=json.loads(result[-1])["hash"]))
    return result


def edit_file(name: str, change: Callable[[Lines], Lines]) -> Attack:
    """Return an attack that changes the lines of a file."""
    return lambda directory: write_lines(directory, name, change(read_lines(directory, name)))


def edit_line(name: str, number: int, change: Callable[[bytes], bytes]) -> Attack:
    """Return an attack that changes one line; `number` counts from 1."""
    return edit_file(
        name, lambda lines: [*lines[: number - 1], change(lines[number - 1]), *lines[number:]]
    )


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Return a change of bytes, which must be present."""

    def change(line: bytes) -> bytes:
        assert old in line
        return line.replace(old, new)

    return change


def remove(*names: str) -> Attack:
    """Return an attack that removes files."""

    def change(directory: Path) -> None:
        for name in names:
            (directory / name).unlink()

    return change


def rename(old: str, new: str) -> Attack:
    """Return an attack that renames a file."""
    return lambda directory: (directory / old).rename(directory / new)


def swap(left: str, right: str) -> Attack:
    """Return an attack that swaps the content of two files."""

    def change(directory: Path) -> None:
        first, second = (directory / left).read_bytes(), (directory / right).read_bytes()
        write_lines(directory, left, [second])
        write_lines(directory, right, [first])

    return change
