"""Writes a TOML document in a random style, and records the position of each key and each value.
Headers, dotted keys and inline tables; quoted names, spaces around dots and signs, comments, blank
lines, indentation, lists and strings over several lines, line ends of Windows. The values stay the
same."""

import json
import random
import re
from typing import Any, NamedTuple

from agentbox.manifest.declarations.key_path import KeyPath
from agentbox.manifest.toml_text import format_toml


class Raw(NamedTuple):
    """Instead of a value: this text after this sign, whatever TOML makes of it."""

    text: str
    sign: str = "="


Place = tuple[int, int]
"""Line and column, from 1; columns count characters."""


class Hand:
    """`keys` and `values` have positions, keys those of their first mention; `text` is what was
    written so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.text = chance, ""
        self.keys: dict[KeyPath, Place] = {}
        self.values: dict[KeyPath, Place] = {}
        self.signs: dict[KeyPath, Place] = {}
        self.line_end = chance.choice(["\n", "\n", "\r\n"])

    def document(self, document: dict[str, Any]) -> bytes:
        """The complete file."""
        self.body(document, ())
        return self.text.replace("\n", self.line_end).encode()

    def body(self, table: dict[str, Any], path: KeyPath, dots: int = 0) -> None:
        """The keys of a table, `dots` levels below the one that is open; then the tables with a header of their own."""
        later = []
        for name, value in table.items():
            if self.has_tables(value) or (
                isinstance(value, dict) and not dots and self.chance.random() < 0.6
            ):
                later.append(name)
            elif isinstance(value, dict) and value and self.chance.random() < 0.7:
                self.body(value, (*path, name), dots + 1)
            else:
                self.margin()
                self.pair((*path, name), dots + 1, value)
                self.end_line()
        for name in later:
            self.below(table[name], (*path, name))

    def below(self, value: Any, path: KeyPath) -> None:
        """One table with its header, or each of a list of tables."""
        rows = (
            [(path, value)]
            if isinstance(value, dict)
            else [((*path, at), row) for at, row in enumerate(value)]
        )
        for at, row in rows:
            brackets = "[]" if isinstance(value, dict) else ("[[", "]]")
            self.margin()
            self.text += brackets[0] + self.space()
            self.dotted(path, len(path))
            self.text += self.space() + brackets[1]
            self.end_line()
            self.body(row, at)

    def has_tables(self, value: Any) -> bool:
        """Lists of tables, and tables with such in them, are written with headers only."""
        if isinstance(value, dict):
            return any(map(self.has_tables, value.values()))
        return isinstance(value, list) and any(isinstance(item, dict) for item in value)

    def pair(self, path: KeyPath, shown: int, value: Any) -> None:
        self.dotted(path, shown)
        sign = value.sign if isinstance(value, Raw) else "="
        self.text += self.space()
        self.signs[path] = self.place()
        self.text += sign + self.space()
        self.values[path] = self.place()
        self.value(value, path)

    def dotted(self, path: KeyPath, shown: int) -> None:
        """The last `shown` names of a path; positions in lists are not written."""
        first = len(path) - shown
        for at in range(first, len(path)):
            name = path[at]
            if isinstance(name, int):
                continue
            if at > first:
                self.text += self.space() + "." + self.space()
            self.keys.setdefault(path[: at + 1], self.place())
            bare = [name] * 3 if re.fullmatch("[A-Za-z0-9_-]+", name) else []
            self.text += self.chance.choice([*bare, f'"{name}"', f"'{name}'"])

    def value(self, value: Any, path: KeyPath) -> None:
        if isinstance(value, Raw):
            self.text += value.text
        elif isinstance(value, dict):
            self.inline(value, path)
        elif isinstance(value, list) and self.chance.random() < 0.4:
            self.text += (
                "[ # é\n" + "".join(f"\t{format_toml(item)},  # ]\n\n" for item in value) + "]"
            )
        elif isinstance(value, str) and value and self.chance.random() < 0.2:
            self.text += f'"""\n{json.dumps(value, ensure_ascii=False)[1:-1]}"""'
        else:
            self.text += format_toml(value)

    def inline(self, table: dict[str, Any], path: KeyPath) -> None:
        self.text += "{" + self.space()
        for at, (name, value) in enumerate(table.items()):
            self.text += "," + self.space() if at else ""
            self.pair((*path, name), 1, value)
        self.text += self.space() + "}"

    def margin(self) -> None:
        """What may precede a line's first word."""
        self.text += self.chance.choice(["", "", "\n", "# [not.a.table]\n", "# é = 1\n\n"])
        self.text += self.chance.choice(["", "", "  ", "\t"])

    def space(self) -> str:
        return self.chance.choice(["", " ", " ", "\t "])

    def end_line(self) -> None:
        self.text += self.chance.choice(["\n", "\n", "  # said = [\n"])

    def place(self) -> Place:
        """The position of the next character."""
        before, _, line = self.text.rpartition("\n")
        return (before.count("\n") + 2 if "\n" in self.text else 1), len(line) + 1
