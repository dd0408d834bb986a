"""E000: bytes that are not valid TOML. The parser's reason, with line and column."""

import re
import tomllib
from typing import Any

from agentbox.manifest.complexity import find_excess
from agentbox.manifest.findings import Finding

_TAIL = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_BOM = b"\xef\xbb\xbf"
TOO_DEEP = "values are nested too deeply"
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4299}")
_SHORTEN = "Keep only what differs from the defaults; no key of a manifest is nested that deeply."


class SyntaxProblem(Exception):
    """Why and where the file is not valid TOML."""

    def __init__(self, message: str, remedy: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.remedy, self.line, self.column = message, remedy, line, column

    def to_finding(self) -> Finding:
        """As finding E000."""
        return Finding(
            code="E000",
            severity="error",
            key="",
            line=self.line,
            column=self.column,
            message=self.message,
            remedy=self.remedy,
            kind="syntax",
        )


def decode(data: bytes, limit: int) -> str:
    """Decodes the text. Raises SyntaxProblem: too large, with a byte order mark, or not UTF-8."""
    if len(data) > limit:
        raise SyntaxProblem(
            f"the file is larger than {limit // 1024} KiB",
            "Keep only what differs from the defaults.",
        )
    if data.startswith(_BOM):
        raise SyntaxProblem(
            "the file starts with a byte order mark", "Save it as UTF-8 without a byte order mark."
        )
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        prefix = data[: error.start].decode()
        raise SyntaxProblem(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x}",
            "Save it as UTF-8.",
            prefix.count("\n") + 1,
            len(prefix) - (prefix.rfind("\n") + 1) + 1,
        ) from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parses the document. Raises SyntaxProblem with the parser's reason."""
    remedy = "Fix the TOML at that position; nothing else can be checked before that."
    if (excess := find_excess(text)) is not None:
        raise SyntaxProblem(
            f"not readable: {excess.description}", _SHORTEN, *line_and_column(text, excess.offset)
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, line, column = _reason(error, text)
        raise SyntaxProblem(f"not TOML: {reason}", remedy, line, column) from error
    except RecursionError as error:
        raise SyntaxProblem(f"not readable: {TOO_DEEP}", remedy) from error
    except ValueError as error:  # int() refuses numbers of more than 4300 digits
        number = _LONG_NUMBER.search(text)
        position = line_and_column(text, number.start()) if number else (1, 1)
        raise SyntaxProblem(
            "not readable: a number has too many digits", "Write 18 digits at most.", *position
        ) from error


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _reason(error: tomllib.TOMLDecodeError, text: str) -> tuple[str, int, int]:
    """Message, line, column: from attributes (Python 3.14), else from the end of the message."""
    message = str(error)
    tail = _TAIL.search(message)
    reason = message[: tail.start()] if tail else message
    line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
    if line and column:
        return reason, line, column
    if tail and tail[1]:
        return reason, int(tail[1]), int(tail[2])
    end = text.rstrip("\n")
    return f"{reason} (at the end)", end.count("\n") + 1, len(end) - (end.rfind("\n") + 1) + 1
