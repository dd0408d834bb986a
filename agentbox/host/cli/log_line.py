"""Log lines of the box, rendered for people: time, level, program, event. Control characters are
escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agentbox.core.visible_text import escape_invisible

BOOT: Final = "boot"
_STAGE_KEY: Final = "agentbox.stage"
_COMMON_KEYS: Final = {
    "level",
    "time",
    "event",
    "boot_id",
    "plan_digest",
    "image_ref",
    "seq",
    _STAGE_KEY,
}
_MAX_VALUE: Final = 100  # characters of one value
_SPAN: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_COLORS: Final = {
    "warn": "33",
    "warning": "33",
    "error": "31",
    "fatal": "31",
    "critical": "31",
    "debug": "2",
}


@dataclass(frozen=True)
class LogLine:
    """A raw line and its decoded JSON object, if it has one."""

    raw: str
    entry: Mapping[str, Any] | None

    @classmethod
    def parse(cls, raw: str) -> LogLine:
        try:
            entry = json.loads(raw)
        except ValueError:
            return cls(raw, None)
        return cls(raw, entry if isinstance(entry, dict) else None)

    @property
    def source(self) -> str:
        """The program that wrote it, `boot` for boot events, "" for a line that is not JSON."""
        if self.entry is None:
            return ""
        return BOOT if _STAGE_KEY in self.entry else str(self.entry.get("program", BOOT))

    def is_since(self, moment: datetime) -> bool:
        """False for a line with an older time."""
        try:
            return self.entry is None or datetime.fromisoformat(str(self.entry["time"])) >= moment
        except (KeyError, ValueError):
            return True

    def render(self, *, color: bool) -> str:
        """Renders it as one line of text."""
        if self.entry is None:
            return escape_invisible(self.raw)
        level = str(self.entry.get("level", ""))
        excluded = _COMMON_KEYS if _STAGE_KEY in self.entry else {*_COMMON_KEYS, "program"}
        fields = " ".join(
            f"{name}={_shorten(value)}"
            for name, value in sorted(self.entry.items())
            if name not in excluded
        )
        moment = str(self.entry.get("time", ""))[11:23]
        text = escape_invisible(
            (
                f"{moment:<12} {level:<7} {self.source:<14} {self.entry.get('event', '')} {fields}"
            ).rstrip()
        )
        return f"\x1b[{_COLORS[level]}m{text}\x1b[0m" if color and level in _COLORS else text


def parse_time(text: str, now: datetime | None = None) -> datetime:
    """Parses a span before now (`10m`, `1h30m`) or an ISO 8601 time (default UTC). Raises
    ValueError."""
    if text and not _SPAN.sub("", text):
        seconds = sum(
            float(match["number"]) * _SECONDS[match["unit"]] for match in _SPAN.finditer(text)
        )
        return (now or datetime.now(UTC)) - timedelta(seconds=seconds)
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _shorten(value: object) -> str:
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    )
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"
