"""Pods and memory of a box."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agentbox.client import pods as requests
from agentbox.client.async_client.api_caller import AsyncApiCaller
from agentbox.client.pods import (
    JSON_PATCH,
    OCTETS,
    AsyncContent,
    Hit,
    MemoryEntry,
    PodMeta,
    WrittenPod,
)
from agentbox.client.transport import build_call


class AsyncPodsClient:
    """Named objects in containers. A container path ends with `/`; `""` is the root. Raises
    ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def write(
        self,
        path: str,
        body: AsyncContent,
        *,
        content_type: str = OCTETS,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> WrittenPod:
        """Stores an object; with `if_none_match="*"` only if it does not exist."""
        return requests.parse_written_pod(
            await self._box.send(
                requests.write_pod(path, body, content_type, if_match, if_none_match)
            )
        )

    async def read(self, path: str, *, byte_range: tuple[int, int | None] | None = None) -> bytes:
        """The whole body, or a range of bytes (first, last)."""
        return (await self._box.send(requests.read_pod(path, byte_range))).content

    @asynccontextmanager
    async def open(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> AsyncIterator[tuple[PodMeta, AsyncIterator[bytes]]]:
        """The metadata and the body as an iterator, for large objects."""
        async with self._box.streaming(requests.read_pod(path, byte_range)) as response:
            yield requests.parse_pod_meta(path, response), response.aiter_raw()

    async def head(self, path: str) -> PodMeta:
        """The metadata of an object."""
        return requests.parse_pod_meta(path, await self._box.send(requests.head_pod(path)))

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> WrittenPod:
        """Applies a JSON Patch atomically."""
        return requests.parse_written_pod(
            await self._box.send(requests.patch_pod(path, patch, patch_type, if_match))
        )

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        """Deletes an object, or an empty container."""
        await self._box.send(requests.delete_pod(path, if_match))

    async def options(self, path: str) -> Mapping[str, str]:
        """The headers Allow, Accept-Put and Accept-Patch."""
        return (
            await self._box.send(
                build_call("options_pod", {"path": path}, headers={"Accept": "*/*"})
            )
        ).headers

    async def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[PodMeta], str | None]:
        """A page of a container's members, and the next cursor."""
        return requests.parse_pod_page(
            await self._box.send(requests.list_pods(container, limit, cursor))
        )


class AsyncMemoryClient:
    """Searchable entries in namespaces. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def store(
        self,
        key: str,
        value: Any,
        *,
        namespace: str = "default",
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]:
        """Returns the stored entry and whether it was created. `text` is searched; default: the
        strings of `value`."""
        response = await self._box.send(
            requests.store_memory(namespace, key, value, text=text, metadata=metadata, ttl_s=ttl_s)
        )
        return MemoryEntry.from_wire(response.json()), response.status_code == 201

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        """The entry; None if it does not exist."""
        response = await self._box.send(
            build_call("retrieve_memory", {"ns": namespace, "key": key}), accepted=(404,)
        )
        return MemoryEntry.from_wire(response.json()) if response.is_success else None

    async def search(
        self,
        query: str,
        *,
        namespaces: tuple[str, ...] = ("default",),
        limit: int = 10,
        mode: str = "hybrid",
        filter: Mapping[str, Any] | None = None,
        min_cosine: float | None = None,
    ) -> list[Hit]:
        """The best matching entries: by meaning (`vector`), by words (`text`), or both
        (`hybrid`)."""
        call = requests.search_memory(
            query, namespaces, limit=limit, mode=mode, filter=filter, min_cosine=min_cosine
        )
        return [Hit.from_wire(hit) for hit in (await self._box.send(call)).json()["hits"]]

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        """Returns whether the entry existed."""
        call = build_call("delete_memory", {"ns": namespace, "key": key})
        return (await self._box.send(call, accepted=(404,))).is_success

    async def list(
        self,
        *,
        namespace: str = "default",
        prefix: str = "",
        filter: Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[list[MemoryEntry], str | None]:
        """A page of entries in order of key, and the next cursor."""
        return requests.parse_memory_page(
            await self._box.send(
                requests.list_memory(namespace, prefix, filter or {}, limit, cursor)
            )
        )

    async def stats(self, namespace: str | None = None) -> Mapping[str, Any]:
        """Statistics of the store, or of one namespace."""
        stats: Mapping[str, Any] = (
            await self._box.send(build_call("memory_stats", query={"namespace": namespace}))
        ).json()
        return stats
