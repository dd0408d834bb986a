"""Pod and memory requests and records, shared by both clients."""

import json
from collections.abc import AsyncIterable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Self

from agentbox.client.records import Wire
from agentbox.client.transport import Call, HttpResponse, build_call, without_none
from agentbox.core import clock

JSON_PATCH = "application/json-patch+json"
OCTETS = "application/octet-stream"
Content = bytes | Iterable[bytes]
AsyncContent = Content | AsyncIterable[bytes]


@dataclass(frozen=True, kw_only=True)
class PodMeta(Wire):
    """Metadata of an object or a container. `modified_at` is RFC 3339; from an object's own
    response it has a resolution of one second."""

    path: str
    kind: str
    size: int | None
    content_type: str
    etag: str | None
    modified_at: str


@dataclass(frozen=True, kw_only=True)
class WrittenPod:
    """`etag` is None if the stored object differs from the sent one because private data was
    masked."""

    created: bool
    etag: str | None
    modified_at: str


@dataclass(frozen=True, kw_only=True)
class MemoryEntry(Wire):
    """A memory entry. Times are RFC 3339."""

    namespace: str
    key: str
    value: Any
    text: str
    metadata: Mapping[str, Any]
    created_at: str
    updated_at: str
    expires_at: str | None


@dataclass(frozen=True, kw_only=True)
class Hit(Wire):
    """A found entry with its scores."""

    entry: MemoryEntry
    score: float
    cosine: float | None
    bm25: float | None

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        return super().from_wire({**data, "entry": MemoryEntry.from_wire(data["entry"])})


def write_pod(
    path: str,
    body: AsyncContent,
    content_type: str,
    if_match: str | None,
    if_none_match: str | None,
) -> Call:
    """PUT of an object; a body other than bytes is streamed."""
    headers = {
        "Content-Type": content_type,
        **without_none({"If-Match": if_match, "If-None-Match": if_none_match}),
    }
    return build_call("write_pod", {"path": path}, content=body, headers=headers)


def read_pod(
    path: str, byte_range: tuple[int, int | None] | None, if_none_match: str | None = None
) -> Call:
    """GET of an object, or of the `byte_range` (first, last)."""
    range_header = (
        None
        if byte_range is None
        else f"bytes={byte_range[0]}-{'' if byte_range[1] is None else byte_range[1]}"
    )
    headers = {
        "Accept": "*/*",
        **without_none({"Range": range_header, "If-None-Match": if_none_match}),
    }
    return build_call("read_pod", {"path": path}, headers=headers)


def head_pod(path: str) -> Call:
    """HEAD of an object or a container."""
    return build_call("read_pod", {"path": path}, headers={"Accept": "*/*"}, method="HEAD")


def patch_pod(path: str, patch: bytes, patch_type: str, if_match: str | None) -> Call:
    """PATCH of an object."""
    headers = {"Content-Type": patch_type, **without_none({"If-Match": if_match})}
    return build_call("patch_pod", {"path": path}, content=patch, headers=headers)


def delete_pod(path: str, if_match: str | None) -> Call:
    """DELETE of an object or an empty container."""
    return build_call("delete_pod", {"path": path}, headers=without_none({"If-Match": if_match}))


def list_pods(container: str, limit: int, cursor: str | None) -> Call:
    """A page of a container's members."""
    return build_call("read_pod", {"path": container}, query={"limit": limit, "cursor": cursor})


def parse_written_pod(response: HttpResponse) -> WrittenPod:
    """Parses the response of a write or a patch."""
    return WrittenPod(
        created=response.status_code == 201,
        etag=response.headers.get("etag"),
        modified_at=_modified(response),
    )


def parse_pod_meta(path: str, response: HttpResponse) -> PodMeta:
    """Parses the response headers of GET or HEAD; a container has no size and no etag."""
    is_container = path == "" or path.endswith("/")
    length = response.headers.get("content-range", "").rpartition("/")[2] or response.headers.get(
        "content-length", "0"
    )
    return PodMeta(
        path=path,
        kind="container" if is_container else "object",
        size=None if is_container else int(length),
        content_type=response.headers.get("content-type", ""),
        etag=response.headers.get("etag"),
        modified_at=_modified(response),
    )


def _modified(response: HttpResponse) -> str:
    header = response.headers.get("last-modified")
    return "" if header is None else clock.to_wire(parsedate_to_datetime(header))


def parse_pod_page(response: HttpResponse) -> tuple[list[PodMeta], str | None]:
    """Parses a page of members and the next cursor."""
    page = response.json()
    return [PodMeta.from_wire(item) for item in page["items"]], page["next_cursor"]


def store_memory(namespace: str, key: str, value: Any, **members: Any) -> Call:
    """PUT of an entry; `members` are the other members of its body, None if not set."""
    return build_call(
        "store_memory",
        {"ns": namespace, "key": key},
        body={"value": value, **without_none(members)},
    )


def list_memory(
    namespace: str, prefix: str, filters: Mapping[str, Any], limit: int, cursor: str | None
) -> Call:
    """A page of entries."""
    query = {
        "prefix": prefix or None,
        "filter": json.dumps(dict(filters)) if filters else None,
        "limit": limit,
        "cursor": cursor,
    }
    return build_call("list_memory", {"ns": namespace}, query=query)


def search_memory(query: str, namespaces: tuple[str, ...], **members: Any) -> Call:
    """A search; `members` are the other members of its body, None if not set."""
    return build_call(
        "search_memory",
        body={"query": query, "namespaces": list(namespaces), **without_none(members)},
    )


def parse_memory_page(response: HttpResponse) -> tuple[list[MemoryEntry], str | None]:
    """Parses a page of entries and the next cursor."""
    page = response.json()
    return [MemoryEntry.from_wire(item) for item in page["items"]], page["next_cursor"]
