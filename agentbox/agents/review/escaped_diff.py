"""Diffs of untrusted text, limited in size, with every character visible."""

from collections.abc import Iterator
from typing import Final

from agentbox.core.visible_text import escape_invisible

CONTEXT: Final = 3  # lines around a change
MAX_BYTES: Final = 512 << 10  # of each version; larger ones are not compared by lines
MAX_LINES: Final = 20_000
MAX_EDITS: Final = 300  # beyond it the difference is one edit: the cost is edits x lines
_BINARY_PREFIX: Final = 8 << 10

Edit = tuple[int, int, int, int]  # lines [a, b) of the old become lines [c, d) of the new


def is_binary(data: bytes) -> bool:
    """As in git: a NUL near the beginning."""
    return b"\0" in data[:_BINARY_PREFIX]


def diff(old: bytes, new: bytes) -> str:
    """Hunks of a unified diff without file names, or a note in brackets if it has no lines to
    show."""
    if is_binary(old) or is_binary(new):
        return "[binary]\n"
    if max(len(old), len(new)) > MAX_BYTES:
        return f"[too large to compare by lines: more than {MAX_BYTES >> 10} KiB]\n"
    a, b = _lines(old), _lines(new)
    if max(len(a), len(b)) > MAX_LINES:
        return f"[too long to compare by lines: more than {MAX_LINES}]\n"
    return "".join(_hunks(a, b, edits(a, b)))


def edits(a: list[str], b: list[str]) -> list[Edit]:
    """Edits in order. Myers' greedy algorithm (1986), limited to MAX_EDITS."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if not inner_a and not inner_b:
        return []
    inner_edits = _myers(inner_a, inner_b) if inner_a and inner_b else None
    replacement = [(0, len(inner_a), 0, len(inner_b))]
    return [
        (x + start, y + start, z + start, w + start)
        for x, y, z, w in (replacement if inner_edits is None else inner_edits)
    ]


def _myers(a: list[str], b: list[str]) -> list[Edit] | None:
    """None if there are more than MAX_EDITS edits."""
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for count in range(MAX_EDITS + 1):
        trace.append(dict(furthest))
        for diagonal in range(-count, count + 1, 2):
            down = diagonal == -count or (
                diagonal != count
                and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < len(a) and 0 <= y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= len(a) and y >= len(b):
                return _merge_adjacent(_steps(trace, len(a), len(b)))
    return None


def _steps(trace: list[dict[int, int]], x: int, y: int) -> Iterator[Edit]:
    """Edits of single lines, last to first."""
    for count in range(len(trace) - 1, 0, -1):
        furthest, diagonal = trace[count], x - y
        down = diagonal == -count or (
            diagonal != count and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        previous = diagonal + 1 if down else diagonal - 1
        old_x = furthest[previous]
        old_y = old_x - previous
        yield (old_x, old_x, old_y, old_y + 1) if down else (old_x, old_x + 1, old_y, old_y)
        x, y = old_x, old_y


def _merge_adjacent(steps: Iterator[Edit]) -> list[Edit]:
    merged: list[Edit] = []
    for edit in reversed(list(steps)):
        if merged and merged[-1][1] == edit[0] and merged[-1][3] == edit[2]:
            merged[-1] = (merged[-1][0], edit[1], merged[-1][2], edit[3])
        else:
            merged.append(edit)
    return merged


def _hunks(a: list[str], b: list[str], changes: list[Edit]) -> Iterator[str]:
    groups: list[list[Edit]] = []
    for edit in changes:
        if groups and edit[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    for group in groups:
        begin, end = max(0, group[0][0] - CONTEXT), min(len(a), group[-1][1] + CONTEXT)
        shift = group[0][2] - group[0][0]
        new_end = end + group[-1][3] - group[-1][1]
        yield f"@@ -{_range(begin, end)} +{_range(begin + shift, new_end)} @@\n"
        position = begin
        for old_from, old_to, new_from, new_to in group:
            yield from (_line(" ", text) for text in a[position:old_from])
            yield from (_line("-", text) for text in a[old_from:old_to])
            yield from (_line("+", text) for text in b[new_from:new_to])
            position = old_to
        yield from (_line(" ", text) for text in a[position:end])


def _range(begin: int, end: int) -> str:
    return f"{begin + 1 if end > begin else begin},{end - begin}"


def _line(sign: str, text: str) -> str:
    if text.endswith("\n"):
        return f"{sign}{escape_invisible(text[:-1], tabs=True)}\n"
    return f"{sign}{escape_invisible(text, tabs=True)}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
