"""Preconditions and byte ranges of a request (RFC 9110 13 and 14), evaluated against the metadata
of an object.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Protocol

from agentbox.core.http.problems import RangeNotSatisfiable
from agentbox.core.slot_errors import PreconditionFailed

_TAG = re.compile(r'(W/)?("[^"]*")')
_RANGE = re.compile(r"\s*bytes\s*=\s*([0-9]{0,18})\s*-\s*([0-9]{0,18})\s*", re.IGNORECASE)
ByteRange = tuple[int, int]  # first and last byte


class Representation(Protocol):
    """The metadata of an object; `size` is in bytes, None if it has no body."""

    @property
    def path(self) -> str: ...

    @property
    def etag(self) -> str | None: ...

    @property
    def modified_at(self) -> datetime: ...

    @property
    def size(self) -> int | None: ...


def http_date(moment: datetime) -> str:
    """Formats a time for `Last-Modified`, to the second."""
    return format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True)


def not_modified(headers: Mapping[str, str], meta: Representation) -> bool:
    """True if GET or HEAD must return 304. Raises PreconditionFailed. Order of evaluation as in RFC
    9110 13.2.2.
    """
    if not _satisfies_if_match(headers, meta) or (
        "if-match" not in headers and _changed_since(headers, "if-unmodified-since", meta)
    ):
        raise PreconditionFailed(
            f"cannot read {meta.path}: the precondition does not hold", etag=meta.etag
        )
    if "if-none-match" in headers:
        header = headers["if-none-match"].strip()
        return header == "*" or meta.etag in [match[2] for match in _TAG.finditer(header)]
    return "if-modified-since" in headers and not _changed_since(headers, "if-modified-since", meta)


def fails_unmodified_since(headers: Mapping[str, str], meta: Representation) -> bool:
    """Whether `If-Unmodified-Since` fails."""
    return _changed_since(headers, "if-unmodified-since", meta)


def _satisfies_if_match(headers: Mapping[str, str], meta: Representation) -> bool:
    """Strong comparison: weak tags never match."""
    header = headers.get("if-match", "*").strip()
    return header == "*" or meta.etag in [
        match[2] for match in _TAG.finditer(header) if not match[1]
    ]


def _changed_since(headers: Mapping[str, str], name: str, meta: Representation) -> bool:
    """Whether the object is newer than the date in that header. A missing or invalid date is
    ignored: it counts as changed for `If-Modified-Since`, as unchanged for `If-Unmodified-Since`.
    """
    date = _date(headers.get(name))
    return (
        name == "if-modified-since"
        if date is None
        else meta.modified_at.replace(microsecond=0) > date
    )


def _date(text: str | None) -> datetime | None:
    try:
        return None if text is None else parsedate_to_datetime(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def requested_range(headers: Mapping[str, str], meta: Representation) -> ByteRange | None:
    """The requested byte range within the object; None for all of it. Multiple ranges, other units
    and invalid ranges are ignored, as is a range whose `If-Range` is not exactly the object's tag.
    Raises RangeNotSatisfiable if it lies outside.
    """
    match, size = _RANGE.fullmatch(headers.get("range", "")), meta.size or 0
    if match is None or headers.get("if-range", meta.etag) != meta.etag:
        return None
    first, last = match[1], match[2]
    if (not first and not last) or (first and last and int(first) > int(last)):
        return None
    start = int(first) if first else max(0, size - int(last))
    if start >= size:
        raise RangeNotSatisfiable(f"cannot read that range: the object has {size} bytes", size=size)
    return start, min(size - 1, int(last)) if first and last else size - 1
