"""Parses a commit object. Its format: git-commit-tree(1), commit.c in git."""

import re
from dataclasses import dataclass
from typing import Final

MAX_MESSAGE: Final = 64 << 10  # bytes that are shown
_PERSON: Final = re.compile(rb"(.*?) ?<([^<>\n]*)> (-?\d{1,20}) ([+-]\d{4,7})")
_MAX_PERSON: Final = 1_000  # characters


@dataclass(frozen=True)
class Person:
    """`time` in Unix seconds, `zone` as in the object."""

    name: str
    time: int
    zone: str


@dataclass(frozen=True)
class CommitObject:
    """Text may have any character: bytes that are no UTF-8 are lone surrogates."""

    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    message: str
    is_cut: bool


def parse(data: bytes) -> CommitObject:
    """Raises ValueError for what `git fsck` refuses too."""
    head, separator, message = data.partition(b"\n\n")
    if not separator:
        head = head.rstrip(b"\n")
    tree, parents, people = "", list[str](), dict[bytes, Person]()
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree" and not tree:
            tree = value.decode("ascii")
        elif key == b"parent":
            parents.append(value.decode("ascii"))
        elif key in (b"author", b"committer") and key not in people:
            people[key] = _person(value)
    if not tree or len(people) != 2:
        raise ValueError("a commit without tree, author or committer")
    return CommitObject(
        tree=tree,
        parents=tuple(parents),
        author=people[b"author"],
        committer=people[b"committer"],
        message=_text(message[:MAX_MESSAGE]),
        is_cut=len(message) > MAX_MESSAGE,
    )


def _person(value: bytes) -> Person:
    found = _PERSON.fullmatch(value)
    if found is None:
        raise ValueError("a commit with an invalid author or committer")
    name = f"{_text(found[1])} <{_text(found[2])}>"[:_MAX_PERSON]
    return Person(name, int(found[3]), found[4].decode("ascii"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
