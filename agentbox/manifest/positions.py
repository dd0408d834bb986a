"""Positions of the keys in a TOML document, which `tomllib` does not report. Only key tokens are
scanned; values are skipped by their delimiters. The document must be valid: for anything else the
result is meaningless. Standard library only.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

from agentbox.manifest.declarations.key_path import KeyPath


class Position(NamedTuple):
    """Both from 1; the column counts characters."""

    line: int
    column: int


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
# Up to two quotes may directly precede the three that end a multi-line string.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})|' + _QUOTED.pattern,
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def key_positions(text: str) -> dict[KeyPath, Position]:
    """The first position of every key, including intermediate tables. Elements of arrays of tables
    are numbered from 0.
    """
    return _Scanner(text).document()


def nearest_position(positions: Mapping[str, Position], key: str) -> Position:
    """The position of a key; for an absent key that of the nearest written parent, else 1:1."""
    while key:
        if key in positions:
            return positions[key]
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return Position(1, 1)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.positions: dict[KeyPath, Position] = {}
        self.lengths: dict[KeyPath, int] = {}  # of arrays of tables written as [[header]]
        self.line = 1
        self.line_start = 0
        self.counted = 0

    def document(self) -> dict[KeyPath, Position]:
        table: KeyPath = ()
        self.skip(_BLANK)
        while self.offset < len(self.text):
            if self.text[self.offset] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_BLANK)
        return self.positions

    def header(self) -> KeyPath:
        """`[a.b]` or `[[a.b]]`; returns the path of that table."""
        double = self.text.startswith("[[", self.offset)
        self.offset += 2 if double else 1
        self.skip(_SPACE)
        path = self.key((), through_arrays=True, stop_at_last=double)
        self.skip(_SPACE)
        self.offset += 2 if double else 1
        if not double:
            return path
        self.lengths[path] = self.lengths.get(path, -1) + 1
        return (*path, self.lengths[path])

    def pair(self, table: KeyPath) -> None:
        path = self.key(table)
        self.skip(_SPACE)
        self.offset += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def key(
        self, path: KeyPath, *, through_arrays: bool = False, stop_at_last: bool = False
    ) -> KeyPath:
        """A dotted key below `path`; records the first position of each part."""
        while True:
            start = self.position()
            path = (*path, self.simple_key())
            self.positions.setdefault(path, start)
            self.skip(_SPACE)
            more = self.text.startswith(".", self.offset)
            if through_arrays and path in self.lengths and (more or not stop_at_last):
                path = (*path, self.lengths[path])
            if not more:
                return path
            self.offset += 1
            self.skip(_SPACE)

    def simple_key(self) -> str:
        if bare := _BARE.match(self.text, self.offset):
            self.offset = bare.end()
            return bare.group()
        quoted = _QUOTED.match(self.text, self.offset)
        if quoted is None:
            raise ValueError(f"no key at {self.position()}")
        self.offset = quoted.end()
        (name,) = tomllib.loads(f"{quoted.group()} = 0")
        return name

    def value(self, path: KeyPath) -> None:
        start = self.text[self.offset]
        if start == "[":
            self.array(path)
        elif start == "{":
            self.inline_table(path)
        elif start in "\"'":
            self.skip(_STRING)
        else:
            self.skip(_SCALAR)

    def array(self, path: KeyPath) -> None:
        index = 0
        self.offset += 1
        self.skip(_BLANK)
        while self.text[self.offset] != "]":
            self.value((*path, index))
            index += 1
            self.after_item()
        self.offset += 1

    def inline_table(self, path: KeyPath) -> None:
        self.offset += 1
        self.skip(_BLANK)  # TOML 1.1 allows line ends here; 1.0 documents have none
        while self.text[self.offset] != "}":
            self.pair(path)
            self.after_item()
        self.offset += 1

    def after_item(self) -> None:
        self.skip(_BLANK)
        if self.text[self.offset] == ",":
            self.offset += 1
            self.skip(_BLANK)

    def skip(self, pattern: re.Pattern[str]) -> None:
        if match := pattern.match(self.text, self.offset):
            self.offset = match.end()

    def position(self) -> Position:
        """The current position; counting continues from the last call."""
        while (end := self.text.find("\n", self.counted, self.offset)) >= 0:
            self.line += 1
            self.line_start = self.counted = end + 1
        self.counted = self.offset
        return Position(self.line, self.offset - self.line_start + 1)
