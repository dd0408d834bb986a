"""Pods over HTTP: objects unchanged, containers as documents."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote_to_bytes

from agentbox.adapters.runtime.context import current
from agentbox.api.auth.bindings import check_pod
from agentbox.api.endpoints.containers import CONTAINER_LINKS, FORMS, OBJECT_LINKS
from agentbox.api.http.call import Call
from agentbox.api.http.reply import AnyReply, Reply, StreamedReply
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.http.conditional import (
    ByteRange,
    fails_unmodified_since,
    http_date,
    not_modified,
    requested_range,
)
from agentbox.core.http.headers import negotiate
from agentbox.core.http.problems import UnsupportedMediaType, invalid
from agentbox.core.slot_errors import (
    BackendError,
    NotFound,
    PreconditionFailed,
    ValidationError,
    ValueTooLarge,
)

DEFAULT_PAGE = 100
DEFAULT_TYPE = "application/octet-stream"
MAX_BUFFERED = 1 << 20  # bytes: a body up to this size is buffered
MAX_TRIES = 5  # of a read whose object changes concurrently
PATCHES = {"patch.json": "application/json-patch+json", "patch.n3": "text/n3"}
_CONDITIONAL_HEADERS = (
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "range",
)
# An object is untrusted: it may run no script under this origin, and a browser must revalidate its
# copy.
_GUARD_HEADERS = (("Content-Security-Policy", "sandbox"), ("Cache-Control", "private, no-cache"))


async def write(call: Call) -> Reply:
    """201 when it was created, 204 when it was replaced. The tag is omitted where redaction changed
    the body.
    """
    path = _path(call)
    for name in ("content-encoding", "content-range"):
        if name in call.headers:
            raise _unsupported_header(name)
    _check_length(call)
    if_match = await _if_match(call, path)
    meta, created = await call.services.slots.pods.write(
        path,
        await _body(call),
        content_type=call.headers.get("content-type", DEFAULT_TYPE),
        if_match=if_match,
        if_none_match=call.headers.get("if-none-match"),
    )
    validators = () if current().redacted else _validators(meta)
    return Reply(status=201 if created else 204, headers=validators)


async def patch(call: Call) -> Reply:
    path = _path(call)
    if_match = await _if_match(call, path)
    body = await call.incoming.read_all(call.services.plan.api.max_body)
    kind = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    pods = call.services.slots.pods
    return Reply(
        status=204,
        headers=_validators(
            await pods.patch(path, body, patch_type=kind or "none", if_match=if_match)
        ),
    )


async def delete(call: Call) -> Reply:
    path = _path(call)
    await call.services.slots.pods.delete(path, if_match=await _if_match(call, path))
    return Reply(status=204)


async def read(call: Call) -> AnyReply:
    """An object (200, 206, 304), or a container as a document."""
    path = _path(call)
    if path == "" or path.endswith("/"):
        return await _container_reply(call, path)
    if call.query:
        raise invalid(f"?{next(iter(call.query))}", "is for containers, whose path ends with /")
    if call.method == "HEAD":
        return _head_reply(call, await call.services.slots.pods.head(path))
    if not any(name in call.headers for name in _CONDITIONAL_HEADERS):
        return _object_reply(call, await call.services.slots.pods.read(path))
    return await _read_conditional(call, path)


async def options(call: Call) -> Reply:
    """204 also for a missing object: the headers tell what a PUT may do there."""
    path = _path(call)
    pods = call.services.slots.pods
    if path == "" or path.endswith("/"):
        await pods.list(path, limit=1)
        return Reply(status=204, headers=(("Allow", "GET, HEAD, OPTIONS, DELETE"),))
    with suppress(NotFound):
        await pods.head(path)
    allow = ("Allow", "GET, HEAD, OPTIONS, PUT, PATCH, DELETE")
    return Reply(status=204, headers=(allow, ("Accept-Put", "*/*"), _accept_patch(call)))


def _accept_patch(call: Call) -> tuple[str, str]:
    capabilities = call.services.slots.capabilities("pods")
    return "Accept-Patch", ", ".join(kind for name, kind in PATCHES.items() if name in capabilities)


def _path(call: Call) -> str:
    """The path of the request. Raises ValidationError for an encoded slash and invalid UTF-8; the
    slot checks the rest. Raises PermissionDenied outside the prefix that the token is bound to.
    """
    raw = call.parameters["path"]
    if "%2f" in raw.lower():
        raise invalid("/path", "has an encoded slash")
    try:
        path = unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise invalid("/path", "is not valid UTF-8") from None
    check_pod(call.caller, path)
    return path


def _unsupported_header(name: str) -> Exception:
    """Bodies are stored as sent: no coding is removed, no range is merged (RFC 9110 14.5)."""
    if name == "content-encoding":
        return UnsupportedMediaType(
            "cannot accept a body with a content coding", accepted=["identity"]
        )
    return invalid("Content-Range", "is not supported for PUT: send the whole object")


def _check_length(call: Call) -> None:
    """Rejects a body with a too large Content-Length before it is read."""
    cap = int(call.services.plan.slots["pods"].options.get("max_object") or 64 << 20)
    length = call.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > cap:
        raise ValueTooLarge(
            f"cannot accept an object of {length} bytes: the maximum is {cap}",
            limit="max_object",
            observed=int(length),
            cap=cap,
            config_path="adapters.pods.max_object",
        )


async def _body(call: Call) -> bytes | AsyncIterator[bytes]:
    """Buffers a body with a small Content-Length; streams any other."""
    length = call.headers.get("content-length", "" if "transfer-encoding" in call.headers else "0")
    if length.isdecimal() and int(length) <= MAX_BUFFERED:
        return await call.incoming.read_all(MAX_BUFFERED)
    return call.incoming.chunks()


async def _if_match(call: Call, path: str) -> str | None:
    """`If-Match`; else `If-Unmodified-Since` as the current tag, so that the change stays
    atomic.
    """
    if "if-match" in call.headers or "if-unmodified-since" not in call.headers:
        return call.headers.get("if-match")
    try:
        meta = await call.services.slots.pods.head(path)
    except NotFound:
        return None
    if fails_unmodified_since(call.headers, meta):
        raise PreconditionFailed(f"cannot change {path}: it was modified since", etag=meta.etag)
    return meta.etag


async def _read_conditional(call: Call, path: str) -> AnyReply:
    """A read with preconditions or a range: they apply to exactly the object whose bytes are
    sent.
    """
    pods = call.services.slots.pods
    for _ in range(MAX_TRIES):
        meta = await pods.head(path)
        if not_modified(call.headers, meta):
            return Reply(status=304, headers=(*_validators(meta), *_GUARD_HEADERS))
        span = requested_range(call.headers, meta)
        try:
            pod = await pods.read(path, byte_range=span)
        except ValidationError:
            continue  # the object became shorter
        if pod.meta.etag == meta.etag:
            return _object_reply(call, pod, span)
    raise BackendError(f"cannot read {path}: it keeps changing", slot="pods", impl="")


def _validators(meta: PodMeta) -> tuple[tuple[str, str], ...]:
    tag = () if meta.etag is None else (("ETag", meta.etag),)
    return (*tag, ("Last-Modified", http_date(meta.modified_at)))


def _object_headers(call: Call, meta: PodMeta) -> tuple[tuple[str, str], ...]:
    """The headers of an object. Raises NotAcceptable when `Accept` excludes its type."""
    negotiate(call.headers, (meta.content_type.partition(";")[0].strip().lower(),))
    links = tuple(("Link", link) for link in OBJECT_LINKS)
    return (
        *_validators(meta),
        *_GUARD_HEADERS,
        ("Accept-Ranges", "bytes"),
        _accept_patch(call),
        *links,
    )


def _head_reply(call: Call, meta: PodMeta) -> Reply:
    if not_modified(call.headers, meta):
        return Reply(status=304, headers=(*_validators(meta), *_GUARD_HEADERS))
    return Reply(
        headers=_object_headers(call, meta), media_type=meta.content_type, length=meta.size
    )


def _object_reply(call: Call, pod: PodObject, span: ByteRange | None = None) -> StreamedReply:
    """All of the object, or the requested range."""
    headers, size = _object_headers(call, pod.meta), pod.meta.size or 0
    if span is None:
        return StreamedReply(
            chunks=pod.body, length=size, media_type=pod.meta.content_type, headers=headers
        )
    first, last = span
    content_range = ("Content-Range", f"bytes {first}-{last}/{size}")
    return StreamedReply(
        chunks=pod.body,
        length=last - first + 1,
        media_type=pod.meta.content_type,
        status=206,
        headers=(*headers, content_range),
    )


async def _container_reply(call: Call, path: str) -> Reply:
    kind = negotiate(call.headers, tuple(FORMS))
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    page = await call.services.slots.pods.list(path, limit=limit, cursor=call.query.get("cursor"))
    links = [*CONTAINER_LINKS]
    if page.next_cursor is not None:
        links.append(f'<?limit={limit}&cursor={page.next_cursor}>; rel="next"')
    render: Callable[..., Any] = FORMS[kind]
    headers = (*(("Link", link) for link in links), ("Vary", "Accept"))
    return Reply(render(path, page), headers=headers, media_type=kind)
