"""Commands with their output, as the pages of docs/ show them: blocks marked `console`, `$ ./agentbox.sh` before the words."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROMPT = "$ ./agentbox.sh "
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run and machine to machine: digests, ids, directories before a manifest, numbers.
_MASKS = (
    (
        re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){1,3}(?:-[0-9a-f]{12})?|\b[0-9a-f]{12,64}\b"),
        "<id>",
    ),
    (re.compile(r"\S*/(agentbox\.toml)"), r"\1"),
    (re.compile(r"(?<![A-Za-z\d])\d+(?:\.\d+)?"), "<n>"),
    (re.compile(r"[ ]+"), " "),
)


@dataclass(frozen=True)
class Shown:
    """One command of a page, without the name of the program, and what it prints."""

    words: tuple[str, ...]
    output: str


def shown(page: Path) -> list[Shown]:
    """Every command of a page in its order."""
    found = []
    for kind, text in _BLOCK.findall(page.read_text()):
        if kind == "console":
            assert text.startswith(PROMPT), (
                f"{page.name}: a console block begins with a command: {text[:40]!r}"
            )
            calls = text.split(PROMPT)[1:]
            found += [
                Shown(tuple(shlex.split(call.partition("\n")[0])), call.partition("\n")[2])
                for call in calls
            ]
    return found


def added_line(page: Path) -> tuple[str, str]:
    """Of the page's first diff the line that is added and the one before it."""
    lines = next(
        text for kind, text in _BLOCK.findall(page.read_text()) if kind == "diff"
    ).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("+"))
    return lines[at][1:], lines[at - 1][1:]


def masked(text: str) -> list[str]:
    """Its lines, without what no page can know."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return [line.strip() for line in text.strip().splitlines()]


def outside_blocks(text: str) -> Iterator[str]:
    """Its lines, without those of programs and their output."""
    inside = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield line
