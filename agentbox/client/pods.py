"""Requests and responses of pods, shared by both clients: bytes, ranges, conditions."""

from collections.abc import AsyncIterable, Iterable
from datetime import datetime
from email.utils import parsedate_to_datetime

from agentbox.client.transport import Call, HttpResponse, build_call, without_none
from agentbox.contracts.pods import PodMeta
from agentbox.core import clock

JSON_PATCH = "application/json-patch+json"
OCTETS = "application/octet-stream"
Content = bytes | Iterable[bytes]
AsyncContent = Content | AsyncIterable[bytes]


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


def parse_written(
    path: str, content_type: str, response: HttpResponse, size: int | None
) -> PodMeta:
    """The metadata after a write or a patch; `etag` is None if the stored object differs from the
    sent one because private data was masked."""
    return PodMeta(
        path=path,
        kind="object",
        size=size,
        content_type=content_type,
        etag=response.headers.get("etag"),
        modified_at=_modified(response),
    )


def parse_pod_meta(path: str, response: HttpResponse) -> PodMeta:
    """The metadata in the headers of GET or HEAD; a container has no size and no etag."""
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


def _modified(response: HttpResponse) -> datetime:
    """The start of Unix time if the response has none, as that of the root container."""
    header = response.headers.get("last-modified")
    return clock.from_unix(0) if header is None else parsedate_to_datetime(header)
