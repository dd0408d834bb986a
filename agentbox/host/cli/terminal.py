"""An agent's output on a terminal: what would move the cursor, set the clipboard or ask the terminal for something is shown
as an escape, and its colours hold for its own text alone. In a file or a pipe every byte is as the agent wrote it."""

import codecs
import re
import sys
from typing import Final, TextIO

from agentbox.core.visible import visible
from agentbox.host.cli.streams import draws

# Colours (SGR) and erasing what is left of a line (EL), ECMA-48 8.3.117 and 8.3.41: programs that know no terminal use both.
# A symbol may ask for its coloured form (U+FE0F), once.
_TAKEN: Final = re.compile(
    r"(\x1b\[[0-9;:]{0,64}[mK]|[\n\r\t]|(?<=[\u2122-\u27bf\u2900-\u2bff\U0001f000-\U0001faff])\ufe0f)"
)
_BEGUN: Final = re.compile(r"\x1b(\[[0-9;:]{0,64})?\Z")
_ALWAYS: Final = "\n\r\t\ufe0f"
_AS_BEFORE: Final = "\x1b[0m"
_RESETS: Final = re.compile(r"\x1b\[0*m")
_MOST_COLORS: Final = 256  # characters of what was set and not reset; beyond, it begins anew


class Shown:
    """Writes to one stream; the pieces may be cut anywhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace") if stream.isatty() else None
        self._draws = draws(stream)
        self._begun = ""
        self._colors = ""  # what it has set: not in force between two pieces, where others write

    def write(self, data: bytes) -> None:
        """At once."""
        if self._decoder is None:
            self._stream.buffer.write(data)
        else:
            text = self._begun + self._decoder.decode(data)
            found = _BEGUN.search(text)
            self._begun = found[0] if found else ""
            self._put(text[: found.start()] if found else text)
        self._stream.flush()

    def close(self) -> None:
        """The end of what it wrote, and colours as before."""
        if self._decoder is not None:
            self._put(self._begun + self._decoder.decode(b"", final=True))
            self._stream.write(_AS_BEFORE if self._draws else "")
            self._stream.flush()

    def _put(self, text: str) -> None:
        if not text:
            return
        pieces = _TAKEN.split(text)  # those at odd places are what is taken
        shown = "".join(
            piece if at % 2 and (self._draws or piece in _ALWAYS) else visible(piece) for at, piece in enumerate(pieces)
        )
        if self._draws:
            before, self._colors = self._colors, _left(self._colors, pieces[1::2])
            shown = f"{before}{shown}{_AS_BEFORE if self._colors else ''}"
        encoding = self._stream.encoding
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))


def _left(colors: str, taken: list[str]) -> str:
    """What is set after these."""
    for one in taken:
        if one.endswith("m"):
            colors = "" if _RESETS.fullmatch(one) else colors + one
            colors = colors if len(colors) <= _MOST_COLORS else ""
    return colors


class Output:
    """Both streams of this program, for the pieces of an agent's."""

    def __init__(self) -> None:
        self._streams = {"stdout": Shown(sys.stdout), "stderr": Shown(sys.stderr)}

    def close(self) -> None:
        """The end of both."""
        for stream in self._streams.values():
            stream.close()

    def write(self, kind: str, data: bytes) -> None:
        """What is of neither stream is left out."""
        if stream := self._streams.get(kind):
            stream.write(data)
