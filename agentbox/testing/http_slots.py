"""Pods and memory of a box as adapters over its API, for the contract suites: what a client of the routes can rely on.

They are no class of the registry: the external classes of these slots speak Solid and PostgreSQL.
"""

import abc
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from agentbox.adapters.memory import checks
from agentbox.adapters.pods.json_patch import JSON_PATCH
from agentbox.adapters.pods.local.bodies import at_once
from agentbox.adapters.pods.local_fs import check_type
from agentbox.adapters.pods.paths import parse
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.box_peer import Peer
from agentbox.adapters.runtime.checks import check_range
from agentbox.client import pods
from agentbox.client.transport import Call
from agentbox.contracts.memory import Hit, MemoryEntry, MemoryStats
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Scalar, from_wire, refuse
from agentbox.core.slot_errors import AdapterError, NotFound


class OverHttp(Adapter):
    """A slot behind the API."""

    impl = "over-http"

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._peer = Peer(cfg, kept=1)

    async def open(self, deadline: Deadline) -> None:
        await self._peer.open(self.contract_version)

    async def close(self) -> None:
        await self._peer.close()

    async def health(self) -> Health:
        try:
            await self._look()
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "")

    @abc.abstractmethod
    async def _look(self) -> None:
        """Asks the slot anything."""

    async def _made(self, call: Call, method: str, *, again: bool = True) -> Any:
        return await self._peer.carry(call, method=method, again=again)


class HttpPods(OverHttp):
    """`modified_at` is to the second, as HTTP has it."""

    slot = "pods"
    capabilities = frozenset({"patch.json", "etag.strong", "etag.on_write", "range", "list.paged", "quota"})

    async def _look(self) -> None:
        await self.list(limit=1)

    async def write(
        self, path: str, body: bytes | AsyncIterator[bytes], *, content_type: str = "application/octet-stream",
        if_match: str | None = None, if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:  # fmt: skip
        parse(path)
        counted = _Counted(body)
        call = pods.write_pod(path, counted.content, check_type(content_type), if_match, if_none_match)
        found = await self._made(call, "write", again=False)
        told = pods.written_of(found)
        meta = PodMeta(
            path=path, kind="object", size=counted.size, content_type=content_type, etag=told.etag,
            modified_at=parsedate_to_datetime(found.headers["last-modified"]),
        )  # fmt: skip
        return meta, told.created

    async def read(self, path: str, *, byte_range: tuple[int, int | None] | None = None) -> PodObject:
        parse(path)
        if byte_range is not None and (byte_range[0] < 0 or (byte_range[1] or byte_range[0]) < byte_range[0]):
            raise refuse("/byte_range", "is no range")
        found = await self._made(pods.read_pod(path, byte_range), "read")
        return PodObject(meta=_meta(pods.meta_of(path, found)), body=at_once(found.content))

    async def head(self, path: str) -> PodMeta:
        if not parse(path, "either").is_container:
            return _meta(pods.meta_of(path, await self._made(pods.head_pod(path), "head")))
        above, cursor = path.removesuffix("/").rpartition("/")[0], None
        while True:
            page = await self.list(f"{above}/" if above else "", limit=500, cursor=cursor)
            if found := [meta for meta in page.items if meta.path == path]:
                return found[0]
            if (cursor := page.next_cursor) is None:
                raise NotFound(f"cannot find {path}", resource="pod", id=path)

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        parse(path)
        found = await self._made(pods.patch_pod(path, patch, patch_type, if_match), "patch", again=False)
        meta = await self.head(path)
        return replace(meta, etag=found.headers["etag"])  # the patch's own, should somebody have been faster than HEAD

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        parse(path, "either")
        await self._made(pods.delete_pod(path, if_match), "delete", again=False)

    async def list(self, container: str = "", *, limit: int = 100, cursor: str | None = None) -> Page[PodMeta]:
        parse(container, "container", "/container")
        check_range(limit, "/limit", LIMIT)
        found = await self._made(pods.list_pods(container, limit, cursor), "list")
        page = from_wire(Page[PodMeta], found.json())
        return Page(items=tuple(map(_to_the_second, page.items)), next_cursor=page.next_cursor)


class _Counted:
    """A body, and how many bytes of it went out."""

    def __init__(self, body: bytes | AsyncIterator[bytes]) -> None:
        self.size = len(body) if isinstance(body, bytes) else 0
        self.content = body if isinstance(body, bytes) else self._pieces(body)

    async def _pieces(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in body:
            self.size += len(piece)
            yield piece


def _meta(told: pods.PodMeta) -> PodMeta:
    return PodMeta.from_wire(told.to_wire())


def _to_the_second(meta: PodMeta) -> PodMeta:
    at: datetime = meta.modified_at.replace(microsecond=0)
    return replace(meta, modified_at=at)


class HttpMemory(OverHttp):
    """Every method is one request."""

    slot = "memory"

    async def _look(self) -> None:
        await self.stats()

    async def store(
        self, key: str, value: JsonValue, *, namespace: str = "default", text: str | None = None,
        metadata: Mapping[str, Scalar] = EMPTY, ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]:  # fmt: skip
        at = _at(namespace, key)
        body = {"value": value, "text": text, "metadata": metadata, "ttl_s": ttl_s}
        found = await self._peer.send("store_memory", at, body=_sendable(body), method="store")
        return MemoryEntry.from_wire(found.json()), found.status_code == 201

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        try:
            found = await self._peer.send("retrieve_memory", _at(namespace, key), method="retrieve")
        except NotFound:
            return None
        return MemoryEntry.from_wire(found.json())

    async def search(
        self, query: str, *, namespaces: tuple[str, ...] = ("default",), limit: int = 10,
        mode: Literal["hybrid", "vector", "text"] = "hybrid", flt: JsonObj = EMPTY, min_cosine: float | None = None,
    ) -> tuple[Hit, ...]:  # fmt: skip
        body = {
            "query": query, "namespaces": list(namespaces), "limit": limit, "mode": mode, "flt": flt, "min_cosine": min_cosine,
        }  # fmt: skip
        found = await self._peer.send("search_memory", body=_sendable(body), method="search")
        return tuple(Hit.from_wire(hit) for hit in found.json()["hits"])

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        try:
            await self._peer.send("delete_memory", _at(namespace, key), method="delete", again=False)
        except NotFound:
            return False
        return True

    async def list(
        self, *, namespace: str = "default", prefix: str = "", flt: JsonObj = EMPTY, limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MemoryEntry]:  # fmt: skip
        checks.check_namespace(namespace)
        found = await self._made(pods.list_memory(namespace, prefix, flt, limit, cursor), "list")
        return from_wire(Page[MemoryEntry], found.json())

    async def stats(self, namespace: str | None = None) -> MemoryStats:
        return MemoryStats.from_wire(
            (await self._peer.send("memory_stats", query={"namespace": namespace}, method="stats")).json()
        )


def _at(namespace: str, key: str) -> dict[str, str]:
    """Raises ValidationError for what no path can carry."""
    return {"ns": checks.check_namespace(namespace), "key": checks.check_key(key)}


def _sendable(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in body.items()}
