"""Text from agents for display: without characters that a terminal or page interprets or that are
invisible.
"""

from typing import Final

# Characters that Python considers printable but that are invisible: default-ignorable ones
# (Unicode, UAX 44) and the blank Braille pattern. They may be part of identifiers, and variation
# selectors can encode arbitrary bytes.
_BLANK: Final = frozenset(
    chr(number)
    for first, last in (
        *(
            (0x034F, 0x034F),
            (0x115F, 0x1160),
            (0x17B4, 0x17B5),
            (0x180B, 0x180F),
            (0x2800, 0x2800),
            (0x3164, 0x3164),
        ),
        *(
            (0xFE00, 0xFE0F),
            (0xFFA0, 0xFFA0),
            (0x16FE4, 0x16FE4),
            (0x1D159, 0x1D159),
            (0xE0100, 0xE01EF),
        ),
    )
    for number in range(first, last + 1)
)


def escape_invisible(text: str, *, tabs: bool = False, lines: bool = False) -> str:
    """Control, bidirectional, invisible and private characters as escapes; bytes that are no text
    as \\xNN. Tabs and ends of lines are kept on request.
    """
    if text.isascii() and text.isprintable():  # most texts
        return text
    kept = ("\t" if tabs else "") + ("\n" if lines else "")
    return "".join(c if is_visible(c) or c in kept else _escaped(c) for c in text)


def is_visible(character: str) -> bool:
    """Whether it is visible and has no other effect. A space counts as visible."""
    return character.isprintable() and character not in _BLANK


def _escaped(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
