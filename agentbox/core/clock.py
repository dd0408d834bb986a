"""Wire form of time: aware UTC, RFC 3339, milliseconds, `Z`."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time: aware, UTC, truncated to milliseconds (the precision of the wire form)."""
    current = datetime.now(UTC)
    return current.replace(microsecond=current.microsecond // 1000 * 1000)


def from_unix(seconds: float) -> datetime:
    """Converts Unix seconds to an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def to_wire(moment: datetime) -> str:
    """`2026-01-01T00:00:00.000Z`. Raises ValueError for a naive time."""
    if moment.tzinfo is None:
        raise ValueError("naive time")
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def from_wire(text: str) -> datetime:
    """The inverse of `to_wire`. Raises ValueError for anything that is not RFC 3339 with
    an offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without offset: {text!r}")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
