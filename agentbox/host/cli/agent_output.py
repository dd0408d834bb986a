"""An agent's output on a terminal: what would move the cursor, set the clipboard or ask the terminal for something is shown
as an escape, and its colours hold for its own text alone. In a file or a pipe every byte is as the agent wrote it."""

import codecs
import re
import sys
from typing import Final, TextIO

from agentbox.core.visible import escape_invisible
from agentbox.host.cli.stdio import supports_escapes

# Colours (SGR) and erasing what is left of a line (EL), ECMA-48 8.3.117 and 8.3.41: programs that know no terminal use both.
# A symbol may ask for its coloured form (U+FE0F), once.
_ALLOWED: Final = re.compile(
    r"(\x1b\[[0-9;:]{0,64}[mK]|[\n\r\t]|(?<=[\u2122-\u27bf\u2900-\u2bff\U0001f000-\U0001faff])\ufe0f)"
)
_INCOMPLETE: Final = re.compile(r"\x1b(\[[0-9;:]{0,64})?\Z")
_ALWAYS_ALLOWED: Final = "\n\r\t\ufe0f"
_RESET: Final = "\x1b[0m"
_RESET_PATTERN: Final = re.compile(r"\x1b\[0*m")
_MAX_COLORS: Final = 256  # characters of what was set and not reset; beyond, it begins anew


class EscapingWriter:
    """Writes to one stream; the pieces may be cut anywhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = (
            codecs.getincrementaldecoder("utf-8")("backslashreplace") if stream.isatty() else None
        )
        self._supports_escapes = supports_escapes(stream)
        self._pending = ""
        self._colors = ""  # what it has set: not in force between two pieces, where others write

    def write(self, data: bytes) -> None:
        """At once."""
        if self._decoder is None:
            self._stream.buffer.write(data)
        else:
            text = self._pending + self._decoder.decode(data)
            match = _INCOMPLETE.search(text)
            self._pending = match[0] if match else ""
            self._write_text(text[: match.start()] if match else text)
        self._stream.flush()

    def close(self) -> None:
        """The end of what it wrote, and colours as before."""
        if self._decoder is not None:
            self._write_text(self._pending + self._decoder.decode(b"", final=True))
            self._stream.write(_RESET if self._supports_escapes else "")
            self._stream.flush()

    def _write_text(self, text: str) -> None:
        if not text:
            return
        pieces = _ALLOWED.split(text)  # those at odd places are what is taken
        escaped = "".join(
            piece
            if index % 2 and (self._supports_escapes or piece in _ALWAYS_ALLOWED)
            else escape_invisible(piece)
            for index, piece in enumerate(pieces)
        )
        if self._supports_escapes:
            previous, self._colors = self._colors, _active_colors(self._colors, pieces[1::2])
            escaped = f"{previous}{escaped}{_RESET if self._colors else ''}"
        encoding = self._stream.encoding
        self._stream.write(escaped.encode(encoding, "backslashreplace").decode(encoding))


def _active_colors(colors: str, sequences: list[str]) -> str:
    """What is set after these."""
    for sequence in sequences:
        if sequence.endswith("m"):
            colors = "" if _RESET_PATTERN.fullmatch(sequence) else colors + sequence
            colors = colors if len(colors) <= _MAX_COLORS else ""
    return colors


class AgentOutput:
    """Both streams of this program, for the pieces of an agent's."""

    def __init__(self) -> None:
        self._streams = {"stdout": EscapingWriter(sys.stdout), "stderr": EscapingWriter(sys.stderr)}

    def close(self) -> None:
        """The end of both."""
        for stream in self._streams.values():
            stream.close()

    def write(self, kind: str, data: bytes) -> None:
        """What is of neither stream is left out."""
        if stream := self._streams.get(kind):
            stream.write(data)
