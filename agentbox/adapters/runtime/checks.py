"""Checks that every slot makes of what it is given: text that can be stored and read back, JSON that is JSON, pages."""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import refuse, to_wire
from agentbox.core.slot_errors import ValidationError, ValueTooLarge
from agentbox.core.storage.stored_keys import raw

MAX_NESTING = 64


def check_text(text: str, at: str, *, longest: int | None = None) -> str:
    """The text. Raises ValidationError for NUL, a lone surrogate, or more than `longest` characters."""
    if not isinstance(text, str):
        raise refuse(at, "must be a string")
    if "\0" in text:
        raise refuse(at, "holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refuse(at, "holds a lone surrogate") from None
    if longest is not None and len(text) > longest:
        raise refuse(at, f"has {len(text)} characters, at most {longest} are allowed")
    return text


def check_json(value: Any, at: str, depth: int = 0) -> None:
    """Raises ValidationError for what JSON cannot carry, and for nesting deeper than 64."""
    if depth > MAX_NESTING:
        raise refuse(at, f"is nested deeper than {MAX_NESTING}")
    if isinstance(value, str):
        check_text(value, at)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_text(key, f"{at}/{key!r}")
            check_json(item, f"{at}/{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_json(item, f"{at}/{index}", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise refuse(at, "is no finite number")
    elif value is not None and not isinstance(value, bool | int | float):
        raise refuse(at, f"is no JSON value ({type(value).__name__})")


def json_text(value: Any, at: str, *, most: int) -> str:
    """JSON of at most `most` bytes that reads back equal. Raises ValidationError or ValueTooLarge."""
    check_json(value, at)
    text = json.dumps(to_wire(value), ensure_ascii=False, separators=(",", ":"))
    check_size(len(text.encode()), at, most)
    return text


def check_size(observed: int, at: str, cap: int) -> None:
    """Raises ValueTooLarge."""
    if observed > cap:
        raise ValueTooLarge(
            f"cannot store {at}: {observed} bytes, at most {cap} are allowed",
            limit=at.strip("/"), observed=observed, cap=cap, config_path="",
        )  # fmt: skip


def check_range(value: int, at: str, bounds: tuple[int, int]) -> int:
    """The integer. Raises ValidationError outside its range."""
    low, high = bounds
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise refuse(at, f"must be an integer from {low} to {high}")
    return value


def cursor_of(listing: Sequence[Any], key: Sequence[Any]) -> str:
    """An opaque cursor: the key of the last record, good for that listing (method and filter) alone."""
    return base64.urlsafe_b64encode(json.dumps([_mark(listing), *map(_key_to_json, key)]).encode()).decode().rstrip("=")


def key_of(cursor: str | None, listing: Sequence[Any], length: int) -> list[Any] | None:
    """The key that a cursor carries, None for none. Raises ValidationError for a cursor of another listing."""
    if cursor is None:
        return None
    try:
        data = read_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, binascii.Error):
        data = None
    if not isinstance(data, list) or len(data) != length + 1 or data[0] != _mark(listing):
        raise ValidationError(
            "cannot go on with this cursor: it belongs to another listing",
            errors=[{"pointer": "/cursor", "detail": "is foreign"}],
        )
    return [_key_from_json(part) for part in data[1:]]


def _key_to_json(part: Any) -> Any:
    """A stored key that is not valid UTF-8 (`sqlite_text`) is carried by its bytes."""
    return part if part == (stored := raw(part)) else {"hex": stored.hex()}


def _key_from_json(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    try:
        return bytes.fromhex(part["hex"]).decode("utf-8", "surrogateescape")
    except (KeyError, TypeError, ValueError):
        return part


def _mark(listing: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:12]
