"""Input checks of all slots: storable text, valid JSON, and page cursors."""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import invalid_value, to_wire
from agentbox.core.slot_errors import ValidationError, ValueTooLarge
from agentbox.core.storage.invalid_utf8_keys import to_bindable

MAX_NESTING = 64


def check_text(text: str, pointer: str, *, max_length: int | None = None) -> str:
    """Return the text. Raises ValidationError for NUL, a lone surrogate, or more than `max_length`
    characters."""
    if not isinstance(text, str):
        raise invalid_value(pointer, "must be a string")
    if "\0" in text:
        raise invalid_value(pointer, "contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid_value(pointer, "contains a lone surrogate") from None
    if max_length is not None and len(text) > max_length:
        raise invalid_value(pointer, f"has {len(text)} characters, the maximum is {max_length}")
    return text


def check_json(value: Any, pointer: str, depth: int = 0) -> None:
    """Raises ValidationError for values that JSON cannot represent, or nested deeper than 64."""
    if depth > MAX_NESTING:
        raise invalid_value(pointer, f"is nested deeper than {MAX_NESTING} levels")
    if isinstance(value, str):
        check_text(value, pointer)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_text(key, f"{pointer}/{key!r}")
            check_json(item, f"{pointer}/{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_json(item, f"{pointer}/{index}", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise invalid_value(pointer, "is not a finite number")
    elif value is not None and not isinstance(value, bool | int | float):
        raise invalid_value(pointer, f"is not a JSON value ({type(value).__name__})")


def json_text(value: Any, pointer: str, *, max_bytes: int) -> str:
    """Encode as JSON of at most `max_bytes` bytes. Raises ValidationError or ValueTooLarge."""
    check_json(value, pointer)
    text = json.dumps(to_wire(value), ensure_ascii=False, separators=(",", ":"))
    check_size(len(text.encode()), pointer, max_bytes)
    return text


def check_size(observed: int, pointer: str, cap: int) -> None:
    """Raises ValueTooLarge if `observed` exceeds `cap`."""
    if observed > cap:
        raise ValueTooLarge(
            f"cannot store {pointer}: {observed} bytes, the maximum is {cap}",
            limit=pointer.strip("/"),
            observed=observed,
            cap=cap,
            config_path="",
        )


def check_range(value: int, pointer: str, bounds: tuple[int, int]) -> int:
    """Return the integer. Raises ValidationError if it is out of range."""
    low, high = bounds
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise invalid_value(pointer, f"must be an integer from {low} to {high}")
    return value


def encode_cursor(listing: Sequence[Any], key: Sequence[Any]) -> str:
    """Return an opaque cursor: the key of the last record, bound to this listing (method and
    filter)."""
    return (
        base64.urlsafe_b64encode(
            json.dumps([_listing_digest(listing), *map(_key_to_json, key)]).encode()
        )
        .decode()
        .rstrip("=")
    )


def decode_cursor(cursor: str | None, listing: Sequence[Any], length: int) -> list[Any] | None:
    """Return the key in a cursor, or None without a cursor. Raises ValidationError for a cursor of
    another listing."""
    if cursor is None:
        return None
    try:
        data = read_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, binascii.Error):
        data = None
    if not isinstance(data, list) or len(data) != length + 1 or data[0] != _listing_digest(listing):
        raise ValidationError(
            "invalid cursor: it belongs to another listing",
            errors=[{"pointer": "/cursor", "detail": "belongs to another listing"}],
        )
    return [_key_from_json(item) for item in data[1:]]


def _key_to_json(item: Any) -> Any:
    """A stored key that is not valid UTF-8 (`sqlite_text`) is encoded as hex."""
    return item if item == (stored := to_bindable(item)) else {"hex": stored.hex()}


def _key_from_json(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    try:
        return bytes.fromhex(item["hex"]).decode("utf-8", "surrogateescape")
    except (KeyError, TypeError, ValueError):
        return item


def _listing_digest(listing: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:12]
