"""Pods on a Solid server: Community Solid Server, another box, or any server with the Solid
protocol (P13 to P15)."""

import asyncio
import builtins
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakValueDictionary

from agentbox.adapters.pods.json_patch import JSON_PATCH, apply_patch, essence, parse_operations
from agentbox.adapters.pods.local.bodies import check_cap
from agentbox.adapters.pods.local_fs import check_content_type
from agentbox.adapters.pods.object_preconditions import ObjectPreconditions
from agentbox.adapters.pods.paths import parse_path, valid_names
from agentbox.adapters.pods.solid.bodies import open_upload
from agentbox.adapters.pods.solid.capabilities import N3_PATCH, SolidCapabilities, probe_server
from agentbox.adapters.pods.solid.connection import SolidConnection
from agentbox.adapters.pods.solid.listing import fetch_page
from agentbox.adapters.pods.solid.members import ContainerMember
from agentbox.adapters.pods.solid.reading import (
    ACCEPT_ANY,
    check_ancestors,
    open_object,
    open_range,
    read_meta,
    read_request,
)
from agentbox.adapters.pods.solid.responses import CONTAINER_TYPE, is_strong, pod_meta
from agentbox.adapters.pods.solid.writing import (
    condition_headers,
    put_object,
    with_current_tag,
    written_meta,
)
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
)
from agentbox.manifest.slot_options import SolidPodsOptions

DEFAULT_TYPE = "application/octet-stream"
MAX_PATCH_ATTEMPTS = 5  # of an emulated patch with concurrent writers (P15)
HEALTH_SECONDS = 1.9
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
                headers=ACCEPT_ANY,
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
            conditions = await condition_headers(
                self._connection, self._server, path, if_match, if_none_match
            )
            return await put_object(self._connection, path, content, kind, conditions)

    async def read(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> PodObject:
        """`byte_range` is first and last byte, as in RFC 9110 14; the last may be None, or beyond
        the end."""
        self._check_object_path(path)
        if byte_range is None:
            return await open_object(self._connection, path, self._cap)
        return await open_range(self._connection, path, byte_range, self._cap)

    async def head(self, path: str) -> PodMeta:
        self._connection.check_open()
        parse_path(path, "either")
        return await read_meta(self._connection, path)

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
            raise await with_current_tag(self._connection, path, error) from None
        return await written_meta(self._connection, path, response, before.content_type, None)

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        self._connection.check_open()
        parse_path(path, "either")
        headers = {} if if_match is None else {"If-Match": if_match}
        try:
            await self._connection.request("DELETE", path, method="delete", headers=headers)
        except PreconditionFailed as error:
            raise await with_current_tag(self._connection, path, error) from None
        except (PermissionDenied, BackendError):
            await check_ancestors(self._connection, path, "delete")
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

    async def _emulate_patch(
        self, path: str, patch_operations: Any, if_match: str | None
    ) -> PodMeta:
        """JSON Patch for servers without it: read, apply, write if unchanged (P15)."""
        last_error = PreconditionFailed(f"cannot patch {path}: it keeps changing", etag=None)
        for _ in range(MAX_PATCH_ATTEMPTS):
            response = await read_request(self._connection, "GET", path, "patch")
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
                    conditions = {"If-Match": meta.etag or ""}
                    return (
                        await put_object(
                            self._connection, path, content, meta.content_type, conditions
                        )
                    )[0]
            except PreconditionFailed as error:
                last_error = error
        raise last_error

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
