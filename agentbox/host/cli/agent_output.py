"""An agent's output. On a terminal, sequences that move the cursor, set the clipboard or query the
terminal are escaped, and colours are confined to the agent's text. Files and pipes get the bytes
unchanged."""

import codecs
import re
import sys
from typing import Final, TextIO

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.stdio import supports_escapes

# Colours (SGR) and erase in line (EL), ECMA-48 8.3.117 and 8.3.41: programs without terminal
# support use both. A symbol may be followed by one variation selector (U+FE0F).
_ALLOWED: Final = re.compile(
    r"(\x1b\[[0-9;:]{0,64}[mK]|[\n\r\t]"
    r"|(?<=[\u2122-\u27bf\u2900-\u2bff\U0001f000-\U0001faff])\ufe0f)"
)
_INCOMPLETE: Final = re.compile(r"\x1b(\[[0-9;:]{0,64})?\Z")
_ALWAYS_ALLOWED: Final = "\n\r\t\ufe0f"
_RESET: Final = "\x1b[0m"
_RESET_PATTERN: Final = re.compile(r"\x1b\[0*m")
_MAX_COLORS: Final = 256  # characters of active sequences; beyond, they are dropped


class EscapingWriter:
    """Writes chunks, split at any byte, to one stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = (
            codecs.getincrementaldecoder("utf-8")("backslashreplace") if stream.isatty() else None
        )
        self._supports_escapes = supports_escapes(stream)
        self._pending = ""
        self._colors = ""  # active sequences, suspended between two chunks

    def write(self, data: bytes) -> None:
        """Writes and flushes a chunk."""
        if self._decoder is None:
            self._stream.buffer.write(data)
        else:
            text = self._pending + self._decoder.decode(data)
            match = _INCOMPLETE.search(text)
            self._pending = match[0] if match else ""
            self._write_text(text[: match.start()] if match else text)
        self._stream.flush()

    def close(self) -> None:
        """Writes pending text and resets the colours."""
        if self._decoder is not None:
            self._write_text(self._pending + self._decoder.decode(b"", final=True))
            self._stream.write(_RESET if self._supports_escapes else "")
            self._stream.flush()

    def _write_text(self, text: str) -> None:
        if not text:
            return
        pieces = _ALLOWED.split(text)  # odd indexes: allowed sequences
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
    """The active colour sequences after these."""
    for sequence in sequences:
        if sequence.endswith("m"):
            colors = "" if _RESET_PATTERN.fullmatch(sequence) else colors + sequence
            colors = colors if len(colors) <= _MAX_COLORS else ""
    return colors


class AgentOutput:
    """stdout and stderr of this program, for an agent's output."""

    def __init__(self) -> None:
        self._streams = {"stdout": EscapingWriter(sys.stdout), "stderr": EscapingWriter(sys.stderr)}

    def close(self) -> None:
        """Closes both writers."""
        for stream in self._streams.values():
            stream.close()

    def write(self, kind: str, data: bytes) -> None:
        """Writes a chunk; kinds other than stdout and stderr are ignored."""
        if stream := self._streams.get(kind):
            stream.write(data)
