"""Pods and memory of a box as adapters over its API, for the contract suites: they test the routes.

They are not in the registry: the external classes of these slots use Solid and PostgreSQL.
"""

import abc
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Literal

from agentbox.adapters.memory import checks
from agentbox.adapters.pods.json_patch import JSON_PATCH
from agentbox.adapters.pods.local.bodies import buffered_body
from agentbox.adapters.pods.local_fs import check_content_type
from agentbox.adapters.pods.paths import parse_path
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.box_peer import BoxPeer
from agentbox.adapters.runtime.input_checks import check_range
from agentbox.client import pods
from agentbox.client.async_client.memory import AsyncMemoryClient
from agentbox.contracts.memory import Hit, MemoryEntry, MemoryStats
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Scalar, from_wire, invalid_value
from agentbox.core.slot_errors import AdapterError, NotFound
from agentbox.manifest.slot_options import HttpOptions


class HttpSlot(Adapter):
    """A slot behind the API."""

    cfg: SlotConfig[HttpOptions]
    impl = "over-http"

    def __init__(self, cfg: SlotConfig[HttpOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._peer = BoxPeer(cfg, max_idle=1)

    async def open(self, deadline: Deadline) -> None:
        await self._peer.open(self.contract_version)

    async def close(self) -> None:
        await self._peer.close()

    async def health(self) -> Health:
        try:
            await self._check()
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "")

    @abc.abstractmethod
    async def _check(self) -> None:
        """Sends any request to the slot."""


class HttpPods(HttpSlot):
    """`modified_at` has a resolution of seconds, as in HTTP."""

    slot = "pods"
    capabilities = frozenset(
        {"patch.json", "etag.strong", "etag.on_write", "range", "list.paged", "quota"}
    )

    async def _check(self) -> None:
        await self.list(limit=1)

    async def write(
        self,
        path: str,
        body: bytes | AsyncIterator[bytes],
        *,
        content_type: str = "application/octet-stream",
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:
        parse_path(path)
        counting_body = _CountingBody(body)
        call = pods.write_pod(
            path, counting_body.content, check_content_type(content_type), if_match, if_none_match
        )
        response = await self._peer.send(call, idempotent=False)
        meta = pods.parse_written(path, content_type, response, counting_body.size)
        return meta, response.status_code == 201

    async def read(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> PodObject:
        parse_path(path)
        if byte_range is not None and (
            byte_range[0] < 0 or (byte_range[1] or byte_range[0]) < byte_range[0]
        ):
            raise invalid_value("/byte_range", "is not a valid range")
        response = await self._peer.send(pods.read_pod(path, byte_range))
        return PodObject(
            meta=pods.parse_pod_meta(path, response), body=buffered_body(response.content)
        )

    async def head(self, path: str) -> PodMeta:
        if not parse_path(path, "either").is_container:
            return pods.parse_pod_meta(path, await self._peer.send(pods.head_pod(path)))
        parent, cursor = path.removesuffix("/").rpartition("/")[0], None
        while True:
            page = await self.list(f"{parent}/" if parent else "", limit=500, cursor=cursor)
            if matches := [meta for meta in page.items if meta.path == path]:
                return matches[0]
            if (cursor := page.next_cursor) is None:
                raise NotFound(f"cannot find {path}", resource="pod", id=path)

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        parse_path(path)
        response = await self._peer.send(
            pods.patch_pod(path, patch, patch_type, if_match), idempotent=False
        )
        meta = await self.head(path)
        return replace(
            meta, etag=response.headers["etag"]
        )  # that of the patch, even if another write came before HEAD

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        parse_path(path, "either")
        await self._peer.send(pods.delete_pod(path, if_match), idempotent=False)

    async def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> Page[PodMeta]:
        parse_path(container, "container", "/container")
        check_range(limit, "/limit", LIMIT)
        response = await self._peer.send(pods.list_pods(container, limit, cursor))
        page = from_wire(Page[PodMeta], response.json())
        return Page(items=tuple(map(_truncate_seconds, page.items)), next_cursor=page.next_cursor)


class _CountingBody:
    """A body that counts its sent bytes."""

    def __init__(self, body: bytes | AsyncIterator[bytes]) -> None:
        self.size = len(body) if isinstance(body, bytes) else 0
        self.content = body if isinstance(body, bytes) else self._pieces(body)

    async def _pieces(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in body:
            self.size += len(chunk)
            yield chunk


def _truncate_seconds(meta: PodMeta) -> PodMeta:
    modified_at: datetime = meta.modified_at.replace(microsecond=0)
    return replace(meta, modified_at=modified_at)


class HttpMemory(HttpSlot):
    """Each method is one request."""

    slot = "memory"

    def __init__(self, cfg: SlotConfig[HttpOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._remote = AsyncMemoryClient(self._peer)

    async def _check(self) -> None:
        await self.stats()

    async def store(
        self,
        key: str,
        value: JsonValue,
        *,
        namespace: str = "default",
        text: str | None = None,
        metadata: Mapping[str, Scalar] = EMPTY,
        ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]:
        _check_names(namespace, key)
        return await self._remote.store(
            key, value, namespace=namespace, text=text, metadata=metadata, ttl_s=ttl_s
        )

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        _check_names(namespace, key)
        return await self._remote.retrieve(key, namespace=namespace)

    async def search(
        self,
        query: str,
        *,
        namespaces: tuple[str, ...] = ("default",),
        limit: int = 10,
        mode: Literal["hybrid", "vector", "text"] = "hybrid",
        filter: JsonObj = EMPTY,
        min_cosine: float | None = None,
    ) -> tuple[Hit, ...]:
        return await self._remote.search(
            query,
            namespaces=namespaces,
            limit=limit,
            mode=mode,
            filter=filter,
            min_cosine=min_cosine,
        )

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        _check_names(namespace, key)
        return await self._remote.delete(key, namespace=namespace)

    async def list(
        self,
        *,
        namespace: str = "default",
        prefix: str = "",
        filter: JsonObj = EMPTY,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MemoryEntry]:
        checks.check_namespace(namespace)
        return await self._remote.list(
            namespace=namespace,
            prefix=prefix,
            filter=filter or None,
            limit=limit,
            cursor=cursor,
        )

    async def stats(self, namespace: str | None = None) -> MemoryStats:
        return await self._remote.stats(namespace)


def _check_names(namespace: str, key: str) -> None:
    """Raises ValidationError for names that a path cannot contain."""
    checks.check_namespace(namespace)
    checks.check_key(key)
