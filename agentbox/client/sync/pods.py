# Written by tools/sync_client.py from async_client/pods.py.
"""Pods of a box."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from agentbox.client import pods as requests
from agentbox.client.pods import JSON_PATCH, OCTETS, Content
from agentbox.client.sync.api_caller import ApiCaller
from agentbox.client.transport import build_call, decode
from agentbox.contracts.pods import PodMeta
from agentbox.core.records.page import Page


class PodsClient:
    """Named objects in containers. A container path ends with `/`; `""` is the root. Raises
    ApiError, BoxUnreachable."""

    def __init__(self, box: ApiCaller) -> None:
        self._box = box

    def write(
        self,
        path: str,
        body: Content,
        *,
        content_type: str = OCTETS,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:
        """Stores an object; with `if_none_match="*"` only if it does not exist. The metadata,
        without the size of a streamed body, and whether it was created."""
        call = requests.write_pod(path, body, content_type, if_match, if_none_match)
        response = self._box.send(call)
        size = len(body) if isinstance(body, bytes) else None
        meta = requests.parse_written(path, content_type, response, size)
        return meta, response.status_code == 201

    def read(self, path: str, *, byte_range: tuple[int, int | None] | None = None) -> bytes:
        """The whole body, or a range of bytes (first, last)."""
        return (self._box.send(requests.read_pod(path, byte_range))).content

    @contextmanager
    def open(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> Iterator[tuple[PodMeta, Iterator[bytes]]]:
        """The metadata and the body as an iterator, for large objects."""
        with self._box.streaming(requests.read_pod(path, byte_range)) as response:
            yield requests.parse_pod_meta(path, response), response.iter_bytes()

    def head(self, path: str) -> PodMeta:
        """The metadata of an object."""
        return requests.parse_pod_meta(path, self._box.send(requests.head_pod(path)))

    def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        """Applies a JSON Patch atomically. The metadata, without size and type."""
        response = self._box.send(requests.patch_pod(path, patch, patch_type, if_match))
        return requests.parse_written(path, "", response, None)

    def delete(self, path: str, *, if_match: str | None = None) -> None:
        """Deletes an object, or an empty container."""
        self._box.send(requests.delete_pod(path, if_match))

    def options(self, path: str) -> Mapping[str, str]:
        """The headers Allow, Accept-Put and Accept-Patch."""
        return (
            self._box.send(build_call("options_pod", {"path": path}, headers={"Accept": "*/*"}))
        ).headers

    def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> Page[PodMeta]:
        """A page of a container's members."""
        response = self._box.send(requests.list_pods(container, limit, cursor))
        return decode(Page[PodMeta], response)
