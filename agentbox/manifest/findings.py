"""A finding: a problem in a manifest, its position, and the remedy."""

import unicodedata
from typing import Any, Final, Literal

from agentbox.core.frozen import frozen

Severity = Literal["error", "warning", "info"]
Kind = Literal["", "syntax", "unknown-key", "wrong-type", "bad-value", "bad-unit", "missing-key"]

_UNPRINTABLE: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
SEVERITIES: Final[dict[str, Severity]] = {"E": "error", "W": "warning", "I": "info"}


def escape_unprintable(text: str) -> str:
    """Escapes control and formatting characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(character) if unicodedata.category(character) in _UNPRINTABLE else character
        for character in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 1 << 16 else f"\\U{code:08X}"


@frozen
class Related:
    """A related position."""

    key: str
    line: int


@frozen
class Finding:
    """`line` and `column` count from 1. `kind` is empty except for E000 and E016. Never contains
    the value of a secret.
    """

    code: str
    severity: Severity
    key: str
    line: int
    column: int
    message: str
    remedy: str
    kind: Kind = ""
    related: tuple[Related, ...] = ()

    def __post_init__(self) -> None:
        """Escapes names and values of the manifest, which may contain terminal control
        characters.
        """
        for name in ("message", "remedy"):
            object.__setattr__(self, name, escape_unprintable(getattr(self, name)))

    def __str__(self) -> str:
        """`12:1: error E016 resources.memry: <message>`, to be prefixed with `<path>:`."""
        key = f" {escape_unprintable(self.key)}" if self.key else ""
        return f"{self.line}:{self.column}: {self.severity} {self.code}{key}: {self.message}"

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Sort key: line, column, code."""
        return self.line, self.column, self.code, self.key

    def to_json(self) -> dict[str, Any]:
        """Plain data with the same names."""
        return {
            "code": self.code,
            "severity": self.severity,
            "key": self.key,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "remedy": self.remedy,
            "kind": self.kind,
            "related": [{"key": item.key, "line": item.line} for item in self.related],
        }
