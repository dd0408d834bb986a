"""The contract of the pods slot: named binary objects in containers."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from agentbox.adapters.runtime.adapter import Page
from agentbox.core.records.wire import Record, record

CONTRACT_VERSION = "1.0.0"
LIMIT = (1, 500)  # members per page


@record
class PodMeta(Record):
    """Metadata of an object or a container."""

    path: str
    kind: Literal["object", "container"]
    size: int | None
    content_type: str
    etag: str | None
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObject:
    """An object being read: its metadata and the chunks of its body. It has no wire form: the body
    is the response itself.
    """

    meta: PodMeta
    body: AsyncIterator[bytes]


class Pods(Protocol):
    """The slot. Clauses P1 to P12."""

    async def write(
        self,
        path: str,
        body: bytes | AsyncIterator[bytes],
        *,
        content_type: str = "application/octet-stream",
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:
        """The object's metadata, and whether it was created."""
        ...

    async def read(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> PodObject: ...

    async def head(self, path: str) -> PodMeta: ...

    async def patch(
        self,
        path: str,
        patch: bytes,
        *,
        patch_type: str = "application/json-patch+json",
        if_match: str | None = None,
    ) -> PodMeta: ...

    async def delete(self, path: str, *, if_match: str | None = None) -> None: ...

    async def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> Page[PodMeta]: ...


RECORDS: Mapping[str, type[Record]] = {"PodMeta": PodMeta}
