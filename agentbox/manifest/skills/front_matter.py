"""The front matter of a SKILL.md: the part of YAML 1.2 that such files use, and nothing else.

Accepted are one mapping of texts (plain on one line, quoted, or a block after `|` or `>`), and
below a key without a value one mapping of such texts. Every scalar is text. Anchors, tags, flow
collections, lists, tabs and comments behind a value are refused: what a reader of all of YAML would
make of them is not what a person reads. Standard library only: Nix renders the catalogue with it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

FENCE: Final = "---"
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,63}):(?: +(.*))?")
_BLOCK: Final = re.compile(r"[|>][+-]?")
# What YAML 1.1 and 1.2 read as a number, a boolean, nothing or a date.
_NO_TEXT: Final = re.compile(
    r"~|null|true|false|yes|no|on|off|y|n|[-+]?\.(inf|nan)|0[xo].*"
    r"|[-+.]?[0-9][0-9a-f_.,:+-]*([tz ].*)?",
    re.IGNORECASE,
)
_INDICATORS: Final = "[]{}&*!%@`|>\"'#,"  # no plain scalar starts with one (YAML 1.2.2, 7.3.3)


class FrontMatterError(ValueError):
    """`line` counts from 1 in the file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


@dataclass(frozen=True)
class Document:
    """A SKILL.md. `lines` has the line of each key; `body_line` is that of the first line of the
    body."""

    fields: Mapping[str, str | Mapping[str, str]]
    lines: Mapping[str, int]
    body: str
    body_line: int


def parse(text: str) -> Document:
    """Raises FrontMatterError."""
    lines = text.split("\n")
    if lines[0] != FENCE:
        raise FrontMatterError(1, "the first line must be ---")
    if FENCE not in lines[1:]:
        raise FrontMatterError(1, "no line --- ends the front matter")
    end = lines.index(FENCE, 1)
    for number, line in enumerate(lines[1:end], 2):
        if any(not c.isprintable() and c != "\t" for c in line):
            raise FrontMatterError(number, "it has a hidden or control character")
    reader = _Reader(lines[1:end])
    fields = reader.mapping(0)
    return Document(fields, reader.lines, "\n".join(lines[end + 1 :]), end + 2)


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines, self._next = lines, 0
        self.lines: dict[str, int] = {}

    def mapping(self, indent: int) -> dict[str, str | Mapping[str, str]]:
        """The mapping whose keys are indented by that many spaces."""
        found: dict[str, str | Mapping[str, str]] = {}
        for line in self._rows():
            depth = _depth(line)
            if depth < indent:
                break
            if depth > indent:
                raise self._error("unexpected indentation: write a text on one line, or after >-")
            match = _KEY.fullmatch(line.strip())
            if match is None:
                raise self._error("expected `key: text`")
            key, value = match[1], (match[2] or "").strip()
            if key in found:
                raise self._error(f"{key} is given twice")
            if indent == 0:
                self.lines[key] = self._next + 2
            self._next += 1
            found[key] = self._value(value, indent)
        return found

    def _rows(self) -> Iterator[str]:
        """The line at the cursor, again and again, without blank lines and comments."""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if "\t" in line:
                raise self._error("a tab in the front matter: use spaces")
            if not line.strip() or line.lstrip().startswith("#"):
                self._next += 1
                continue
            yield line

    def _value(self, value: str, indent: int) -> str | Mapping[str, str]:
        if _BLOCK.fullmatch(value):
            return self._block(indent, folded=value[0] == ">")
        if value:
            self._next -= 1  # for the line of an error
            text = self._scalar(value)
            self._next += 1
            return text
        if indent:
            return ""
        nested = self.mapping(self._nested_indent())
        return {key: text for key, text in nested.items() if isinstance(text, str)} or ""

    def _nested_indent(self) -> int:
        """The indentation of the next row; one that no row has if there is nothing nested."""
        row = next(self._rows(), "")
        return _depth(row) or 1

    def _scalar(self, value: str) -> str:
        if value[0] == '"':
            try:
                text = json.loads(value)
            except ValueError as error:
                raise self._error("this is not a text in double quotes") from error
            return str(text)
        if value[0] == "'":
            inner = value[1:-1]
            if len(value) < 2 or value[-1] != "'" or "'" in inner.replace("''", ""):
                raise self._error("this is not a text in single quotes")
            return inner.replace("''", "'")
        if value[0] in _INDICATORS or value[:2] in ("- ", "? ") or value in ("-", "?"):
            raise self._error(f"a text must not start with {value[0]}: put it in quotes")
        if ": " in value or " #" in value or value.endswith(":"):
            raise self._error("a text with `: ` or ` #` must be in quotes")
        if _NO_TEXT.fullmatch(value):
            raise self._error(f"{value} is not a text in YAML: put it in quotes")
        return value

    def _block(self, indent: int, *, folded: bool) -> str:
        rows: list[str] = []
        depth = 0
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.strip():
                depth = depth or _depth(line)
                if _depth(line) < depth or depth <= indent:
                    break
                if folded and _depth(line) > depth:
                    raise self._error("unexpected indentation in a text after >")
            rows.append(line[depth:])
            self._next += 1
        text = "\n".join(rows).strip("\n")
        return re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace("\n\n", "\n") if folded else text

    def _error(self, reason: str) -> FrontMatterError:
        return FrontMatterError(self._next + 2, reason)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
