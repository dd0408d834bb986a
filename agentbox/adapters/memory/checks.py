"""The limits of an entry (M10), and the searchable text of a value (M1)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.adapters.runtime.input_checks import (
    check_json,
    check_range,
    check_size,
    check_text,
    json_text,
)
from agentbox.contracts.memory import (
    HIT_LIMIT,
    MAX_KEY,
    MAX_METADATA,
    MAX_NAMESPACES,
    MAX_QUERY,
    MAX_TTL,
    MAX_VALUE,
    NAMESPACE,
)
from agentbox.core.records.wire import JsonValue, invalid_value

MAX_METADATA_BYTES = 4 << 10
_NAMESPACE = re.compile(NAMESPACE)


def check_namespace(namespace: str, pointer: str = "/namespace") -> str:
    if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
        raise invalid_value(
            pointer, "must be 1 to 128 of a-z 0-9 . _ : - and start with a letter or digit"
        )
    return namespace


def check_key(key: str, pointer: str = "/key") -> str:
    """A key is part of an HTTP path, so no segment may be `.` or `..`."""
    check_text(key, pointer)
    if not key or len(key.encode()) > MAX_KEY:
        raise invalid_value(pointer, f"must have 1 to {MAX_KEY} bytes")
    if any(segment in (".", "..") for segment in key.split("/")):
        raise invalid_value(pointer, "has a segment that is . or ..")
    return key


def check_value(value: JsonValue) -> str:
    """Return the value as JSON text."""
    return json_text(value, "/value", max_bytes=MAX_VALUE)


def check_metadata(metadata: Mapping[str, Any]) -> str:
    """Return the metadata as JSON text. Raises ValidationError unless it has at most 32 keys with
    scalar values."""
    if not isinstance(metadata, Mapping):
        raise invalid_value("/metadata", "must be an object")
    if len(metadata) > MAX_METADATA:
        raise invalid_value("/metadata", f"has {len(metadata)} keys, the maximum is {MAX_METADATA}")
    for key, value in metadata.items():
        check_text(key, "/metadata")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise invalid_value(
                f"/metadata/{key}", "must be a string, a number, true, false or null"
            )
    return json_text(dict(metadata), "/metadata", max_bytes=MAX_METADATA_BYTES)


def searchable_text(value: JsonValue, text: str | None) -> str:
    """Return the given text, else the strings of the value in document order, one per line."""
    searched = "\n".join(_strings(value)) if text is None else check_text(text, "/text")
    check_size(len(searched.encode()), "/text", MAX_VALUE)
    return searched


def check_search(
    query: str, namespaces: tuple[str, ...], limit: int, mode: str, min_cosine: float | None
) -> None:
    check_text(query, "/query", max_length=MAX_QUERY)
    if not 1 <= len(namespaces) <= MAX_NAMESPACES:
        raise invalid_value("/namespaces", f"must name 1 to {MAX_NAMESPACES} namespaces")
    for index, namespace in enumerate(namespaces):
        check_namespace(namespace, f"/namespaces/{index}")
    check_range(limit, "/limit", HIT_LIMIT)
    if mode not in ("hybrid", "vector", "text"):
        raise invalid_value("/mode", "must be hybrid, vector or text")
    if min_cosine is not None:
        check_json(min_cosine, "/min_cosine")
        if isinstance(min_cosine, bool) or not -1 <= min_cosine <= 1:
            raise invalid_value("/min_cosine", "must be between -1 and 1")


def check_ttl(ttl_s: int | None) -> None:
    if ttl_s is not None:
        check_range(ttl_s, "/ttl_s", (1, MAX_TTL))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
