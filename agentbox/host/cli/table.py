"""The printer of rows that verbs of data share: aligned columns, one line a row."""

from __future__ import annotations

from collections.abc import Sequence

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.output import Output

MAX_CELL = 80  # characters of each cell but those in `whole`


def print_table(
    out: Output, rows: Sequence[Sequence[object]], *, whole: tuple[int, ...] = ()
) -> None:
    """Prints rows of equal length. Cells may be an agent's: they are escaped, and cut at 80
    characters, except in the columns `whole` (ids, paths and keys, which are typed again). None is
    a minus sign.
    """
    cells = [[_cell(value, number in whole) for number, value in enumerate(row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        out.line(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


def print_fields(out: Output, fields: Sequence[tuple[str, object]]) -> None:
    """Prints name and value, one line each; None, "" and empty lists are left out. Lines of a text
    stay lines, each below the other."""
    width = max((len(name) for name, _ in fields), default=0)
    for name, value in fields:
        if value is None or value == "" or value == [] or value == {}:
            continue
        first, *rest = str(value).split("\n")
        out.line(f"{name:<{width}}  {first}")
        for line in rest:
            out.line(f"{'':<{width}}  {line}")


def _cell(value: object, whole: bool) -> str:
    text = "-" if value is None else escape_invisible(str(value))
    return text if whole or len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"
