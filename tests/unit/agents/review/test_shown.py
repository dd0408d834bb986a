"""What a reviewer sees of an agent's text."""

import re
import sys
import unicodedata

import pytest

from agentbox.agents.review.escaped_diff import diff
from agentbox.core.visible_text import escape_invisible

EMPTY = (
    "FILLER",
    "VARIATION SELECTOR",
    "GRAPHEME JOINER",
    "VOWEL INHERENT",
    "BRAILLE PATTERN BLANK",
    "NULL NOTEHEAD",
)
INK = re.compile("(GAP|LINE|PUNCTUATION SPACE)[ -]FILLER")  # what scribes draw


def test_every_character_that_shows_nothing_is_an_escape() -> None:
    """By its name, wherever in Unicode it is; a letter beside it stays."""
    names = (
        (chr(number), unicodedata.name(chr(number), "")) for number in range(sys.maxunicode + 1)
    )
    blank = [
        letter
        for letter, name in names
        if any(word in name for word in EMPTY) and not INK.search(name)
    ]
    assert len(blank) > 260
    assert [
        f"{ord(letter):x}" for letter in blank if letter in escape_invisible(f"a{letter}")
    ] == []


@pytest.mark.parametrize(
    ("added", "shown"),
    [
        ("run({\u3164})\n", "+run({\\u3164})\n"),  # an identifier of JavaScript
        ('run("\U000e0141\ufe01")\n', '+run("\\U000e0141\\ufe01")\n'),  # bytes spelled in selectors
        ("\u00fcber caf\u0065\u0301 \u6f22\u5b57\n", "+\u00fcber caf\u0065\u0301 \u6f22\u5b57\n"),
    ],
)
def test_a_line_of_a_diff_hides_no_code(added: str, shown: str) -> None:
    """Text that a reader does not see runs all the same."""
    assert diff(b"", added.encode()).splitlines(keepends=True)[1:] == [shown]
