"""Requests that change nothing on a Solid server: an object or a part of it, metadata, and the
ancestors of a path."""

from collections.abc import AsyncIterator, Mapping

import httpx

from agentbox.adapters.pods.local.bodies import buffered_body, check_cap, resolve_range, slice_body
from agentbox.adapters.pods.solid.connection import SolidConnection
from agentbox.adapters.pods.solid.responses import pod_meta, range_start
from agentbox.contracts.pods import PodMeta, PodObject
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import BackendError, NotFound, PermissionDenied, ValidationError

ByteRange = tuple[int, int | None]  # first and last byte
ACCEPT_ANY = {"Accept": "*/*"}


async def read_request(
    connection: SolidConnection,
    verb: str,
    path: str,
    method: str,
    headers: Mapping[str, str] = ACCEPT_ANY,
) -> httpx.Response:
    """Return a successful response. Raises NotFound for a path below an object, for which some
    servers return an arbitrary error."""
    try:
        return await connection.request(verb, path, method=method, headers=headers, idempotent=True)
    except (PermissionDenied, BackendError):
        await check_ancestors(connection, path, method)
        raise


async def read_meta(connection: SolidConnection, path: str) -> PodMeta:
    """Return the metadata of an object or container. Raises NotFound."""
    return pod_meta(path, await read_request(connection, "HEAD", path, "head"))


async def open_range(
    connection: SolidConnection, path: str, byte_range: ByteRange, cap: int
) -> PodObject:
    """Open a part of an object. Raises ValidationError for a range outside it."""
    first, last = byte_range
    if first < 0 or (last is not None and last < first):
        raise invalid_value("/byte_range", "is not a valid range")
    try:
        return await open_object(connection, path, cap, byte_range, byte_range)
    except ValidationError:
        size = (await read_meta(connection, path)).size or 0
        if first >= size:
            raise invalid_value("/byte_range", f"is outside an object of {size} bytes") from None
    # Some servers support neither single bytes nor ranges beyond the end: request more and
    # slice the result.
    requested = (min(first, size - 2), size - 1) if size > 1 else None
    return await open_object(connection, path, cap, byte_range, requested)


async def open_object(
    connection: SolidConnection,
    path: str,
    cap: int,
    byte_range: ByteRange | None = None,
    requested: ByteRange | None = None,
) -> PodObject:
    """Request an object, or the `requested` range, and return the part `byte_range` of it. Bodies
    up to 1 MiB are read before returning; larger ones are streamed. Raises ValueTooLarge for a body
    of unknown size over the cap."""
    response = await read_request(
        connection, "GET", path, "read", {**ACCEPT_ANY, **_range_header(requested)}
    )
    if not response.is_closed and "content-length" in response.headers:
        meta = pod_meta(path, response)
        body: AsyncIterator[bytes] = connection.stream_body(response, "read")
    else:
        content = await connection.read_body(response, "read", cap)
        check_cap(len(content), cap)
        meta, body = pod_meta(path, response, len(content)), buffered_body(content)
    if byte_range is not None:  # the requested part, whatever the server sends
        start, size = resolve_range(byte_range, meta.size or 0)
        body = slice_body(body, start - range_start(response), size)
    return PodObject(meta=meta, body=body)


async def check_ancestors(connection: SolidConnection, path: str, method: str) -> None:
    """Raises NotFound for a path below an object."""
    if await find_object_ancestor(connection, path, method) is not None:
        raise NotFound(f"cannot find {path}", resource="pod", id=path)


async def find_object_ancestor(connection: SolidConnection, path: str, method: str) -> str | None:
    """Return the ancestor of a path that is an object; None without one."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        ancestor = "/".join(parts[:depth])
        if (
            await connection.request_raw(
                "HEAD", ancestor, method=method, headers=ACCEPT_ANY, idempotent=True
            )
        ).is_success:
            return ancestor
    return None


def _range_header(byte_range: ByteRange | None) -> dict[str, str]:
    if byte_range is None:
        return {}
    first, last = byte_range
    return {"Range": f"bytes={first}-{'' if last is None else last}"}
