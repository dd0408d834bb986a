"""Pods of a box."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agentbox.client import pods as requests
from agentbox.client.async_client.api_caller import AsyncApiCaller
from agentbox.client.pods import JSON_PATCH, OCTETS, AsyncContent
from agentbox.client.transport import build_call, decode
from agentbox.contracts.pods import PodMeta
from agentbox.core.records.page import Page


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
    ) -> tuple[PodMeta, bool]:
        """Stores an object; with `if_none_match="*"` only if it does not exist. The metadata,
        without the size of a streamed body, and whether it was created."""
        call = requests.write_pod(path, body, content_type, if_match, if_none_match)
        response = await self._box.send(call)
        size = len(body) if isinstance(body, bytes) else None
        meta = requests.parse_written(path, content_type, response, size)
        return meta, response.status_code == 201

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
    ) -> PodMeta:
        """Applies a JSON Patch atomically. The metadata, without size and type."""
        response = await self._box.send(requests.patch_pod(path, patch, patch_type, if_match))
        return requests.parse_written(path, "", response, None)

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
    ) -> Page[PodMeta]:
        """A page of a container's members."""
        response = await self._box.send(requests.list_pods(container, limit, cursor))
        return decode(Page[PodMeta], response)
