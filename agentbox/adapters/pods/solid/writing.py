"""Writes of an object on a Solid server: the conditions to send, and the metadata afterwards."""

import httpx

from agentbox.adapters.pods.object_preconditions import ObjectPreconditions
from agentbox.adapters.pods.solid.bodies import UploadBody
from agentbox.adapters.pods.solid.capabilities import SolidCapabilities
from agentbox.adapters.pods.solid.connection import SolidConnection
from agentbox.adapters.pods.solid.reading import find_object_ancestor, read_meta
from agentbox.adapters.pods.solid.responses import pod_meta
from agentbox.contracts.pods import PodMeta
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import BackendError, NotFound, PermissionDenied, PreconditionFailed


async def put_object(
    connection: SolidConnection,
    path: str,
    content: UploadBody,
    kind: str,
    condition_headers: dict[str, str],
) -> tuple[PodMeta, bool]:
    """Return the metadata, and whether the object was created. Raises PreconditionFailed with the
    current tag, ValidationError for a path below an object."""
    headers = {"Content-Type": kind, **content.headers, **condition_headers}
    try:
        response = await connection.request(
            "PUT", path, method="write", headers=headers, content=content.body
        )
    except PreconditionFailed as error:
        raise await with_current_tag(connection, path, error) from None
    except (PermissionDenied, BackendError):
        if (ancestor := await find_object_ancestor(connection, path, "write")) is not None:
            raise invalid_value("/path", f"is below {ancestor}, which is an object") from None
        raise
    meta = await written_meta(connection, path, response, kind, content.size)
    return meta, response.status_code == httpx.codes.CREATED


async def written_meta(
    connection: SolidConnection, path: str, response: httpx.Response, kind: str, size: int | None
) -> PodMeta:
    """Return the metadata from the response to a write; what it does not include is requested."""
    headers = response.headers
    if size is None or "etag" not in headers or "last-modified" not in headers:
        return await read_meta(connection, path)
    modified_at = pod_meta(path, response).modified_at
    return PodMeta(
        path=path,
        kind="object",
        size=size,
        content_type=kind,
        etag=headers["etag"],
        modified_at=modified_at,
    )


async def condition_headers(
    connection: SolidConnection,
    server: SolidCapabilities,
    path: str,
    if_match: str | None,
    if_none_match: str | None,
) -> dict[str, str]:
    """Return the condition headers. Some servers create missing objects with `If-Match` or evaluate
    `If-None-Match` differently; for servers that are not a box the conditions are checked here and
    sent as the expected state. Raises PreconditionFailed."""
    headers = {"If-Match": if_match, "If-None-Match": if_none_match}
    if server.is_box or (if_match is None and if_none_match in (None, "*")):
        return {name: value for name, value in headers.items() if value is not None}
    try:
        etag = (await read_meta(connection, path)).etag
    except NotFound:
        ObjectPreconditions(if_match).check(path, None)
        return {"If-None-Match": "*"}
    ObjectPreconditions(if_match, if_none_match).check(path, etag)
    return {"If-Match": etag or "*"}


async def with_current_tag(
    connection: SolidConnection, path: str, error: PreconditionFailed
) -> PreconditionFailed:
    """Return the error with the current tag, None if the object does not exist."""
    if error.members["etag"] is not None:
        return error
    try:
        etag = (await read_meta(connection, path)).etag
    except NotFound:
        etag = None
    return PreconditionFailed(error.message, etag=etag)
