"""A finding: one thing that is wrong with a manifest, where it stands, and what to write instead."""

from dataclasses import dataclass
from typing import Any, Final, Literal

Severity = Literal["error", "warning", "info"]
Kind = Literal["", "syntax", "unknown-key", "wrong-type", "bad-value", "bad-unit", "missing-key"]

SEVERITIES: Final[dict[str, Severity]] = {"E": "error", "W": "warning", "I": "info"}


@dataclass(frozen=True, kw_only=True)
class Related:
    """Another place that takes part."""

    key: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`line` and `column` count from 1. `kind` is empty but for E000 and E016. Never holds a secret's value."""

    code: str
    severity: Severity
    key: str
    line: int
    column: int
    message: str
    remedy: str
    kind: Kind = ""
    related: tuple[Related, ...] = ()

    def __str__(self) -> str:
        """`12:1: error E016 resources.memry: <message>`, to be put behind `<path>:`."""
        key = f" {self.key}" if self.key else ""
        return f"{self.line}:{self.column}: {self.severity} {self.code}{key}: {self.message}"

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Findings are shown by line, column, code."""
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
            "related": [{"key": at.key, "line": at.line} for at in self.related],
        }
