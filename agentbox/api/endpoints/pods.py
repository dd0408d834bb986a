"""Pods over HTTP: objects unchanged, containers as documents."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.responses import Response

from agentbox.adapters.runtime.context import current
from agentbox.api.auth.bindings import check_pod
from agentbox.api.endpoints.pod_containers import CONTAINER_LINKS, FORMS, OBJECT_LINKS
from agentbox.api.http.query import query_value
from agentbox.api.http.request import ApiRequest
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.operations.pods import MEMBERS
from agentbox.contracts.pods import PodMeta, PodObject, Pods
from agentbox.core.http.conditional import (
    ByteRange,
    fails_unmodified_since,
    http_date,
    not_modified,
    requested_range,
)
from agentbox.core.http.headers import negotiate
from agentbox.core.http.problems import UnsupportedMediaType, invalid
from agentbox.core.http.responses import PiecesResponse, header_list
from agentbox.core.records.wire import to_json
from agentbox.core.slot_errors import (
    BackendError,
    NotFound,
    PreconditionFailed,
    ValidationError,
    ValueTooLarge,
)
from agentbox.manifest.slot_options import ObjectLimit
from agentbox.plan.slots import slot_options

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
_MEMBERS = tuple(query_value(member) for member in MEMBERS)


class PodHandlers:
    """`capabilities` are those of the slot now."""

    def __init__(
        self, pods: Pods, capabilities: Callable[[], frozenset[str]], plans: PlanSource
    ) -> None:
        self._pods, self._capabilities, self._plans = pods, capabilities, plans

    async def write(self, request: ApiRequest) -> Response:
        """201 when it was created, 204 when it was replaced. The tag is omitted where redaction
        changed the body.
        """
        path = _path(request)
        for name in ("content-encoding", "content-range"):
            if name in request.headers:
                raise _unsupported_header(name)
        self._check_length(request)
        if_match = await self._if_match(request, path)
        meta, created = await self._pods.write(
            path,
            await _body(request),
            content_type=request.headers.get("content-type", DEFAULT_TYPE),
            if_match=if_match,
            if_none_match=request.headers.get("if-none-match"),
        )
        validators = () if current().redacted else _validators(meta)
        return Response(status_code=201 if created else 204, headers=header_list(*validators))

    async def patch(self, request: ApiRequest) -> Response:
        path = _path(request)
        if_match = await self._if_match(request, path)
        body = await request.incoming.read_all(self._plans.current.api.max_body)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        meta = await self._pods.patch(path, body, patch_type=kind or "none", if_match=if_match)
        return Response(status_code=204, headers=header_list(*_validators(meta)))

    async def delete(self, request: ApiRequest) -> None:
        path = _path(request)
        await self._pods.delete(path, if_match=await self._if_match(request, path))

    async def read(self, request: ApiRequest) -> Response:
        """An object (200, 206, 304), or a container as a document."""
        path = _path(request)
        if path == "" or path.endswith("/"):
            return await self._container_reply(request, path)
        if request.query:
            raise invalid(
                f"?{next(iter(request.query))}", "is for containers, whose path ends with /"
            )
        if request.method == "HEAD":
            return self._head_reply(request, await self._pods.head(path))
        if not any(name in request.headers for name in _CONDITIONAL_HEADERS):
            return self._object_reply(request, await self._pods.read(path))
        return await self._read_conditional(request, path)

    async def options(self, request: ApiRequest) -> Response:
        """204 also for a missing object: the headers tell what a PUT may do there."""
        path = _path(request)
        if path == "" or path.endswith("/"):
            await self._pods.list(path, limit=1)
            allow = ("Allow", "GET, HEAD, OPTIONS, DELETE")
            return Response(status_code=204, headers=header_list(allow))
        with suppress(NotFound):
            await self._pods.head(path)
        allow = ("Allow", "GET, HEAD, OPTIONS, PUT, PATCH, DELETE")
        headers = header_list(allow, ("Accept-Put", "*/*"), self._accept_patch())
        return Response(status_code=204, headers=headers)

    def _accept_patch(self) -> tuple[str, str]:
        capabilities = self._capabilities()
        kinds = (kind for name, kind in PATCHES.items() if name in capabilities)
        return "Accept-Patch", ", ".join(kinds)

    def _check_length(self, request: ApiRequest) -> None:
        """Rejects a body with a too large Content-Length before it is read."""
        cap = ObjectLimit.of(slot_options(self._plans.current.slots, "pods")).max_object
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > cap:
            raise ValueTooLarge(
                f"cannot accept an object of {length} bytes: the maximum is {cap}",
                limit="max_object",
                observed=int(length),
                cap=cap,
                config_path="adapters.pods.max_object",
            )

    async def _if_match(self, request: ApiRequest, path: str) -> str | None:
        """`If-Match`; else `If-Unmodified-Since` as the current tag, so that the change stays
        atomic.
        """
        if "if-match" in request.headers or "if-unmodified-since" not in request.headers:
            return request.headers.get("if-match")
        try:
            meta = await self._pods.head(path)
        except NotFound:
            return None
        if fails_unmodified_since(request.headers, meta):
            raise PreconditionFailed(f"cannot change {path}: it was modified since", etag=meta.etag)
        return meta.etag

    async def _read_conditional(self, request: ApiRequest, path: str) -> Response:
        """A read with preconditions or a range: they apply to exactly the object whose bytes are
        sent.
        """
        for _ in range(MAX_TRIES):
            meta = await self._pods.head(path)
            if not_modified(request.headers, meta):
                return _not_modified(meta)
            span = requested_range(request.headers, meta)
            try:
                pod = await self._pods.read(path, byte_range=span)
            except ValidationError:
                continue  # the object became shorter
            if pod.meta.etag == meta.etag:
                return self._object_reply(request, pod, span)
        raise BackendError(f"cannot read {path}: it keeps changing", slot="pods", impl="")

    def _object_headers(self, request: ApiRequest, meta: PodMeta) -> tuple[tuple[str, str], ...]:
        """The headers of an object. Raises NotAcceptable when `Accept` excludes its type."""
        negotiate(request.headers, (meta.content_type.partition(";")[0].strip().lower(),))
        links = tuple(("Link", link) for link in OBJECT_LINKS)
        return (
            ("Content-Type", meta.content_type),
            *_validators(meta),
            *_GUARD_HEADERS,
            ("Accept-Ranges", "bytes"),
            self._accept_patch(),
            *links,
        )

    def _head_reply(self, request: ApiRequest, meta: PodMeta) -> Response:
        if not_modified(request.headers, meta):
            return _not_modified(meta)
        length = ("Content-Length", str(meta.size or 0))
        return Response(headers=header_list(*self._object_headers(request, meta), length))

    def _object_reply(
        self, request: ApiRequest, pod: PodObject, span: ByteRange | None = None
    ) -> Response:
        """All of the object, or the requested range."""
        headers, size = self._object_headers(request, pod.meta), pod.meta.size or 0
        if span is None:
            return PiecesResponse(pod.body, size, 200, headers)
        first, last = span
        content_range = ("Content-Range", f"bytes {first}-{last}/{size}")
        return PiecesResponse(pod.body, last - first + 1, 206, (*headers, content_range))

    async def _container_reply(self, request: ApiRequest, path: str) -> Response:
        kind = negotiate(request.headers, tuple(FORMS))
        limit, cursor = (read(request.query) for read in _MEMBERS)
        page = await self._pods.list(path, limit=limit, cursor=cursor)
        links = [*CONTAINER_LINKS]
        if page.next_cursor is not None:
            links.append(f'<?limit={limit}&cursor={page.next_cursor}>; rel="next"')
        render: Callable[..., Any] = FORMS[kind]
        document = render(path, page)
        return Response(
            document if isinstance(document, bytes) else to_json(document).encode(),
            headers=header_list(
                ("Content-Type", kind), *(("Link", link) for link in links), ("Vary", "Accept")
            ),
        )


def _path(request: ApiRequest) -> str:
    """The path of the request. Raises ValidationError for an encoded slash and invalid UTF-8; the
    slot checks the rest. Raises PermissionDenied outside the prefix that the token is bound to.
    """
    raw = request.parameters["path"]
    if "%2f" in raw.lower():
        raise invalid("/path", "has an encoded slash")
    try:
        path = unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise invalid("/path", "is not valid UTF-8") from None
    check_pod(request.caller, path)
    return path


def _unsupported_header(name: str) -> Exception:
    """Bodies are stored as sent: no coding is removed, no range is merged (RFC 9110 14.5)."""
    if name == "content-encoding":
        return UnsupportedMediaType(
            "cannot accept a body with a content coding", accepted=["identity"]
        )
    return invalid("Content-Range", "is not supported for PUT: send the whole object")


async def _body(request: ApiRequest) -> bytes | AsyncIterator[bytes]:
    """Buffers a body with a small Content-Length; streams any other."""
    length = request.headers.get(
        "content-length", "" if "transfer-encoding" in request.headers else "0"
    )
    if length.isdecimal() and int(length) <= MAX_BUFFERED:
        return await request.incoming.read_all(MAX_BUFFERED)
    return request.incoming.chunks()


def _validators(meta: PodMeta) -> tuple[tuple[str, str], ...]:
    tag = () if meta.etag is None else (("ETag", meta.etag),)
    return (*tag, ("Last-Modified", http_date(meta.modified_at)))


def _not_modified(meta: PodMeta) -> Response:
    return Response(status_code=304, headers=header_list(*_validators(meta), *_GUARD_HEADERS))
