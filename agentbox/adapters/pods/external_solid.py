"""Pods on a Solid server: Community Solid Server, another box, or any server with the Solid
protocol (P13 to P15)."""

import asyncio
import builtins
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakValueDictionary

import httpx

from agentbox.adapters.pods.json_patch import JSON_PATCH, apply_patch, essence, parse_operations
from agentbox.adapters.pods.local.bodies import buffered_body, check_cap, resolve_range, slice_body
from agentbox.adapters.pods.local_fs import check_content_type
from agentbox.adapters.pods.object_preconditions import ObjectPreconditions
from agentbox.adapters.pods.paths import parse_path, valid_names
from agentbox.adapters.pods.solid.bodies import UploadBody, open_upload
from agentbox.adapters.pods.solid.capabilities import N3_PATCH, SolidCapabilities, probe_server
from agentbox.adapters.pods.solid.connection import SolidConnection
from agentbox.adapters.pods.solid.listing import fetch_page
from agentbox.adapters.pods.solid.members import ContainerMember
from agentbox.adapters.pods.solid.responses import CONTAINER_TYPE, is_strong, pod_meta, range_start
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.input_checks import check_range, decode_cursor, encode_cursor
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import (
    AdapterError,
    BackendError,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    UnsupportedPatch,
    ValidationError,
)
from agentbox.manifest.slot_options import SolidPodsOptions

DEFAULT_TYPE = "application/octet-stream"
MAX_PATCH_ATTEMPTS = 5  # of an emulated patch with concurrent writers (P15)
HEALTH_SECONDS = 1.9
ByteRange = tuple[int, int | None] | None  # first and last byte
_ACCEPT_ANY = {"Accept": "*/*"}
_PATCH_TYPES = {"patch.json": JSON_PATCH, "patch.n3": N3_PATCH}


class ExternalSolidPods(Adapter):
    """`endpoint` is the root container. `modified_at` has a resolution of one second, as in HTTP;
    listings contain no etags."""

    cfg: SlotConfig[SolidPodsOptions]
    slot = "pods"
    impl = "external-solid"

    def __init__(self, cfg: SlotConfig[SolidPodsOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._connection = SolidConnection(cfg)
        self._cap = cfg.options.max_object
        self._server = SolidCapabilities()
        self._patch_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self, deadline: Deadline) -> None:
        self._connection.open()
        try:
            self._server = await probe_server(self._connection)
        except BaseException:
            await self._connection.close()
            raise
        self.capabilities = self._server.capabilities

    async def close(self) -> None:
        await self._connection.close()

    async def health(self) -> Health:
        """Query the server for the probe object or the root container."""
        try:
            await self._connection.request(
                "HEAD",
                self._server.health_path,
                method="health",
                headers=_ACCEPT_ANY,
                seconds=HEALTH_SECONDS,
            )
        except NotFound:
            pass  # the object was removed; the server still answers
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "")

    async def write(
        self,
        path: str,
        body: bytes | AsyncIterator[bytes],
        *,
        content_type: str = DEFAULT_TYPE,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:
        """If the server returns no tag, the result is read afterwards and may be that of a later
        writer (P13)."""
        self._check_object_path(path)
        kind = check_content_type(content_type)
        async with open_upload(body, self._cap, streamed=self._server.is_box) as content:
            condition_headers = await self._condition_headers(path, if_match, if_none_match)
            return await self._put(path, content, kind, condition_headers)

    async def _put(
        self, path: str, content: UploadBody, kind: str, condition_headers: dict[str, str]
    ) -> tuple[PodMeta, bool]:
        headers = {"Content-Type": kind, **content.headers, **condition_headers}
        try:
            response = await self._connection.request(
                "PUT", path, method="write", headers=headers, content=content.body
            )
        except PreconditionFailed as error:
            raise await self._with_tag(path, error) from None
        except (PermissionDenied, BackendError):
            if (ancestor := await self._find_object_ancestor(path, "write")) is not None:
                raise invalid_value("/path", f"is below {ancestor}, which is an object") from None
            raise
        return await self._written_meta(
            path, response, kind, content.size
        ), response.status_code == httpx.codes.CREATED

    async def read(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> PodObject:
        """`byte_range` is first and last byte, as in RFC 9110 14; the last may be None, or beyond
        the end."""
        self._check_object_path(path)
        if byte_range is None:
            return await self._open_object(path)
        first, last = byte_range
        if first < 0 or (last is not None and last < first):
            raise invalid_value("/byte_range", "is not a valid range")
        try:
            return await self._open_object(path, byte_range, byte_range)
        except ValidationError:
            size = (await self.head(path)).size or 0
            if first >= size:
                raise invalid_value(
                    "/byte_range", f"is outside an object of {size} bytes"
                ) from None
        # Some servers support neither single bytes nor ranges beyond the end: request more and
        # slice the result.
        return await self._open_object(
            path, byte_range, (min(first, size - 2), size - 1) if size > 1 else None
        )

    async def head(self, path: str) -> PodMeta:
        self._connection.check_open()
        parse_path(path, "either")
        return pod_meta(path, await self._read_request("HEAD", path, "head", _ACCEPT_ANY))

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        self._check_object_path(path)
        kind = essence(patch_type)
        if kind == JSON_PATCH and JSON_PATCH not in self._server.patches:
            lock = self._patch_locks.setdefault(path, asyncio.Lock())
            async with lock:
                return await self._emulate_patch(
                    path, parse_operations(patch, patch_type), if_match
                )
        if kind not in (JSON_PATCH, N3_PATCH) or kind not in self._server.patches:
            raise UnsupportedPatch(
                f"cannot apply a patch of type {kind}", supported=self._supported_patches()
            )
        before = await self.head(path)
        headers = {"Content-Type": patch_type, "If-Match": if_match or "*"}
        try:
            response = await self._connection.request(
                "PATCH", path, method="patch", headers=headers, content=patch
            )
        except PreconditionFailed as error:
            raise await self._with_tag(path, error) from None
        return await self._written_meta(path, response, before.content_type, None)

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        self._connection.check_open()
        parse_path(path, "either")
        headers = {} if if_match is None else {"If-Match": if_match}
        try:
            await self._connection.request("DELETE", path, method="delete", headers=headers)
        except PreconditionFailed as error:
            raise await self._with_tag(path, error) from None
        except (PermissionDenied, BackendError):
            await self._check_ancestors(path, "delete")
            raise

    async def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> Page[PodMeta]:
        """In byte order of names, within each page of a server that pages itself."""
        self._connection.check_open()
        parse_path(container, "container", "/container")
        check_range(limit, "/limit", LIMIT)
        listing = ["list", container]
        query, after = decode_cursor(cursor, listing, 2) or ("", "")
        items: list[PodMeta] = []
        while True:
            by_name, next_query = await fetch_page(
                self._connection, container, query, double_encoded=self._server.double_encoded
            )
            for name in valid_names(list(by_name)):
                if name.encode() <= after.encode():
                    continue
                if len(items) == limit:
                    return Page(
                        items=tuple(items), next_cursor=encode_cursor(listing, (query, after))
                    )
                items.append(await self._member_meta(container, by_name[name]))
                after = name
            if next_query is None:
                return Page(items=tuple(items), next_cursor=None)
            query, after = next_query, ""

    async def _member_meta(self, container: str, member: ContainerMember) -> PodMeta:
        """Return the meta of a member; incomplete ones are requested from the server."""
        path = f"{container}{member.name}" + ("/" if member.kind == "container" else "")
        if member.modified_at is None or (member.kind == "object" and member.size is None):
            return await self.head(path)
        kind = CONTAINER_TYPE if member.kind == "container" else member.media_type
        size = None if member.kind == "container" else member.size
        return PodMeta(
            path=path,
            kind=member.kind,
            size=size,
            content_type=kind,
            etag=None,
            modified_at=member.modified_at,
        )

    async def _open_object(
        self, path: str, byte_range: ByteRange = None, requested: ByteRange = None
    ) -> PodObject:
        """Read bodies up to 1 MiB before returning; larger ones are streamed."""
        response = await self._read_request(
            "GET", path, "read", {**_ACCEPT_ANY, **_range_header(requested)}
        )
        if not response.is_closed and "content-length" in response.headers:
            meta = pod_meta(path, response)
            body: AsyncIterator[bytes] = self._connection.stream_body(response, "read")
        else:
            content = await self._connection.read_body(response, "read", self._cap)
            check_cap(len(content), self._cap)
            meta, body = pod_meta(path, response, len(content)), buffered_body(content)
        if byte_range is not None:  # the requested part, whatever the server sends
            start, size = resolve_range(byte_range, meta.size or 0)
            body = slice_body(body, start - range_start(response), size)
        return PodObject(meta=meta, body=body)

    async def _read_request(
        self, verb: str, path: str, method: str, headers: dict[str, str]
    ) -> httpx.Response:
        """Send a request that changes nothing. For a path below an object some servers return an
        arbitrary error."""
        try:
            return await self._connection.request(
                verb, path, method=method, headers=headers, idempotent=True
            )
        except (PermissionDenied, BackendError):
            await self._check_ancestors(path, method)
            raise

    async def _emulate_patch(
        self, path: str, patch_operations: Any, if_match: str | None
    ) -> PodMeta:
        """JSON Patch for servers without it: read, apply, write if unchanged (P15)."""
        last_error = PreconditionFailed(f"cannot patch {path}: it keeps changing", etag=None)
        for _ in range(MAX_PATCH_ATTEMPTS):
            response = await self._read_request("GET", path, "patch", _ACCEPT_ANY)
            body = await self._connection.read_body(response, "patch", self._cap)
            check_cap(len(body), self._cap)
            meta = pod_meta(path, response, len(body))
            ObjectPreconditions(if_match).check(path, meta.etag)
            patched = apply_patch(body, meta.content_type, patch_operations)
            if not is_strong(meta.etag):
                raise UnsupportedPatch(
                    f"cannot patch {path}: the server returns no strong ETag",
                    supported=self._supported_patches(),
                )
            try:
                async with open_upload(patched, self._cap, streamed=True) as content:
                    return (
                        await self._put(
                            path, content, meta.content_type, {"If-Match": meta.etag or ""}
                        )
                    )[0]
            except PreconditionFailed as error:
                last_error = error
        raise last_error

    async def _written_meta(
        self, path: str, response: httpx.Response, kind: str, size: int | None
    ) -> PodMeta:
        headers = response.headers
        if size is None or "etag" not in headers or "last-modified" not in headers:
            return await self.head(path)
        modified_at = pod_meta(path, response).modified_at
        return PodMeta(
            path=path,
            kind="object",
            size=size,
            content_type=kind,
            etag=headers["etag"],
            modified_at=modified_at,
        )

    async def _condition_headers(
        self, path: str, if_match: str | None, if_none_match: str | None
    ) -> dict[str, str]:
        """Return the condition headers. Some servers create missing objects with `If-Match` or
        evaluate `If-None-Match` differently; for servers that are not a box the conditions are
        checked here and sent as the expected state."""
        headers = {"If-Match": if_match, "If-None-Match": if_none_match}
        if self._server.is_box or (if_match is None and if_none_match in (None, "*")):
            return {name: value for name, value in headers.items() if value is not None}
        try:
            etag = (await self.head(path)).etag
        except NotFound:
            ObjectPreconditions(if_match).check(path, None)
            return {"If-None-Match": "*"}
        ObjectPreconditions(if_match, if_none_match).check(path, etag)
        return {"If-Match": etag or "*"}

    async def _with_tag(self, path: str, error: PreconditionFailed) -> PreconditionFailed:
        """Return the error with the current tag."""
        if error.members["etag"] is not None:
            return error
        try:
            etag = (await self.head(path)).etag
        except NotFound:
            etag = None
        return PreconditionFailed(error.message, etag=etag)

    async def _check_ancestors(self, path: str, method: str) -> None:
        """Raises NotFound for a path below an object."""
        if await self._find_object_ancestor(path, method) is not None:
            raise NotFound(f"cannot find {path}", resource="pod", id=path)

    async def _find_object_ancestor(self, path: str, method: str) -> str | None:
        """Return the ancestor of a path that is an object; None without one."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            ancestor = "/".join(parts[:depth])
            if (
                await self._connection.request_raw(
                    "HEAD", ancestor, method=method, headers=_ACCEPT_ANY, idempotent=True
                )
            ).is_success:
                return ancestor
        return None

    def _check_object_path(self, path: str) -> None:
        """Check the path of an object. Raises ValidationError for names reserved by the server."""
        self._connection.check_open()
        pod_path = parse_path(path)
        if pod_path.name.endswith(self._server.reserved_suffixes):
            raise invalid_value(
                "/path",
                f"ends in {' or '.join(self._server.reserved_suffixes)}, which the server reserves",
            )

    def _supported_patches(self) -> builtins.list[str]:
        return [kind for name, kind in _PATCH_TYPES.items() if name in self.capabilities]


def _range_header(byte_range: ByteRange) -> dict[str, str]:
    if byte_range is None:
        return {}
    first, last = byte_range
    return {"Range": f"bytes={first}-{'' if last is None else last}"}
