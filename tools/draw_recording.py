"""Draws a recorded terminal session as an SVG image.

Rows appear in the recorded order. Long pauses are shortened, and each command waits for a reader.
Where animation is not supported or not wanted, the image shows the whole session.
"""

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape

from recording import COLUMNS, Recording

LONGEST_PAUSE_S = 1.5
READING_S = 2.0  # before a command or a remark
ROW, COLUMN, MARGIN = 18, 8.4, 16  # pixels
COMMAND, REMARK = MARKS = ("$ ", "# ")
_WRAPPER = textwrap.TextWrapper(COLUMNS, drop_whitespace=False, break_on_hyphens=False)
STYLE = """
  rect { fill: #16181d }
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
         fill: #c9cdd4; white-space: pre; animation: appear 1ms backwards }
  .command { fill: #ffffff; font-weight: bold }
  .remark { fill: #7f8794 }
  @keyframes appear { from { visibility: hidden } }
  @media (prefers-reduced-motion: reduce) { text { animation: none } }
"""


def rows(recording: Recording) -> Iterator[tuple[float, str]]:
    """Each row, at most COLUMNS wide, with the seconds at which the image shows it."""
    shown_at = before = 0.0
    line = ""
    for seconds, text in recording.events:
        shown_at += min(seconds - before, LONGEST_PAUSE_S)
        if text.lstrip().startswith(MARKS) and line == "" and shown_at:
            shown_at += READING_S
        before = seconds
        *complete, line = (line + text).split("\n")
        for ended in complete:
            for row in _WRAPPER.wrap(ended) or [""]:
                yield shown_at, row


def svg(recording: Recording) -> str:
    """The image as text."""
    drawn = list(rows(recording))
    width, height = round(COLUMNS * COLUMN) + 2 * MARGIN, len(drawn) * ROW + 2 * MARGIN
    title = escape(recording.title)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8"/>',
    ]
    for number, (seconds, row) in enumerate(drawn, 1):
        if row:
            kind = {COMMAND: ' class="command"', REMARK: ' class="remark"'}.get(row[:2], "")
            place = f'x="{MARGIN}" y="{MARGIN + number * ROW - 4}"'
            delay = f'style="animation-delay:{seconds:.2f}s"'
            parts.append(f"<text{kind} {place} {delay}>{escape(row)}</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"
