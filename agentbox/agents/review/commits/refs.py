"""Reads HEAD and the refs of a repository that an agent may have written.

No git runs: files are opened below a descriptor and without following links, and all of it is
bounded. Formats: gitrepository-layout(5), git-pack-refs(1), git-check-ref-format(1).
"""

import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from agentbox.core.frozen import frozen
from agentbox.core.linux.openat2 import open_beneath

HEADS: Final = "refs/heads/"
MAX_REFS: Final = 20_000
_MAX_DEPTH: Final = 20  # directories below refs
_MAX_REF: Final = 4 << 10  # bytes of one ref file
_MAX_PACKED: Final = 16 << 20  # bytes of packed-refs
_MAX_NAME: Final = 1_000  # characters
_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\U0010ffff~^:?*\[\\]|\.\.|@\{|//")
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK


class RefRejected(ValueError):
    """HEAD or a ref cannot be used; the text says why."""


@frozen
class Refs:
    """`head`: the ref that HEAD names, "" if it names a commit itself. `tip`: the commit that it
    leads to, "" if there is none yet. `ids`: every ref and its content; that of a symbolic ref is
    `ref: …`."""

    head: str
    tip: str
    ids: dict[str, str]


def is_safe_name(name: str) -> bool:
    """Whether git accepts the name of a ref; only ASCII names are."""
    parts = name.split("/")
    return (
        len(name) <= _MAX_NAME
        and len(parts) >= 2
        and not _UNSAFE.search(name)
        and not any(not part or part[0] in ".-" or part.endswith((".", ".lock")) for part in parts)
    )


def is_id(text: str) -> bool:
    """Whether it is a complete object id."""
    return _ID.fullmatch(text) is not None


def read_refs(git_dir: int) -> Refs:
    """The refs of the repository with that descriptor. Raises RefRejected, OSError."""
    if _exists(git_dir, "reftable"):
        raise RefRejected("its refs are stored as a reftable, which is not supported")
    text = _read_text(git_dir, "HEAD", _MAX_REF)
    if text is None:
        raise RefRejected("HEAD is not a file")
    ids = {**_packed_refs(git_dir), **dict(_loose_refs(git_dir))}
    content = text.rstrip("\n")
    if is_id(content):
        return Refs(head="", tip=content, ids=ids)
    keyword, _, name = content.partition(" ")
    name = name.strip(" ")
    if keyword != "ref:" or not is_safe_name(name) or not name.startswith(HEADS):
        raise RefRejected(f"HEAD names no branch: {content[:_MAX_NAME]}")
    tip = ids.get(name, "")
    if tip and not is_id(tip):
        raise RefRejected(f"{name} names no commit: {tip[:_MAX_NAME]}")
    return Refs(head=name, tip=tip, ids=ids)


def _packed_refs(git_dir: int) -> dict[str, str]:
    text = _read_text(git_dir, "packed-refs", _MAX_PACKED)
    ids: dict[str, str] = {}
    for line in (text or "").split("\n"):
        object_id, _, name = line.partition(" ")
        if is_id(object_id) and name:
            ids[name[:_MAX_NAME]] = object_id
            _check_count(len(ids))
    return ids


def _loose_refs(git_dir: int) -> Iterator[tuple[str, str]]:
    pending, count = [("refs", 0)], 0
    while pending:
        path, depth = pending.pop()
        try:
            descriptor = open_beneath(git_dir, path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # a link, or without permissions: git finds no ref there either
            continue
        try:
            with os.scandir(descriptor) as entries:
                names = sorted((item.name, item.is_dir(follow_symlinks=False)) for item in entries)
        finally:
            os.close(descriptor)
        for name, is_directory in names:
            count += 1
            _check_count(count)
            inner = f"{path}/{name}"
            if is_directory and depth < _MAX_DEPTH:
                pending.append((inner, depth + 1))
            elif (text := _read_text(git_dir, inner, _MAX_REF)) is not None:
                yield inner[:_MAX_NAME], text.rstrip("\n")


def _check_count(count: int) -> None:
    if count > MAX_REFS:
        raise RefRejected(f"it has more than {MAX_REFS} refs")


def read_bytes(directory: int, path: str, max_bytes: int) -> bytes | None:
    """None if it is not a regular file, is larger, or is reached through a link."""
    try:
        descriptor = open_beneath(directory, path, _FILE_FLAGS)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        stats = os.fstat(descriptor)
        return stream.read() if stat.S_ISREG(stats.st_mode) and stats.st_size <= max_bytes else None


def _read_text(directory: int, path: str, max_bytes: int) -> str | None:
    data = read_bytes(directory, path, max_bytes)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True
