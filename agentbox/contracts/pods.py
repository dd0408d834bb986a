"""The contract of the pods slot: named binary objects in containers."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts.arguments import PAGE_BOUNDS, Cursor, PageSize
from agentbox.contracts.routes.operation import INTERNAL, header
from agentbox.core.frozen import frozen_slots
from agentbox.core.records.bounds import bounded_text, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import Record, record

CONTRACT_VERSION = "1.0.0"
LIMIT = PAGE_BOUNDS  # members per page

# OpenAPI has no parameter of several segments: this schema applies to each segment.
PodPath = Annotated[
    str,
    bounded_text(maximum=255, pattern=r"^[^/\\\x00-\x1f\x7f]+$"),
    schema_keywords(
        description="One segment here; the API accepts any number, separated by `/`. "
        "A path that ends with `/` is a container."
    ),
]
IfMatch = Annotated[str | None, header("If-Match")]
IfNoneMatch = Annotated[str | None, header("If-None-Match")]


@record
class PodMeta(Record):
    """Metadata of an object or a container."""

    path: str
    kind: Literal["object", "container"]
    size: int | None
    content_type: str
    etag: str | None
    modified_at: datetime


@frozen_slots
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
        path: PodPath,
        body: bytes | AsyncIterator[bytes],
        *,
        content_type: Annotated[str, INTERNAL] = "application/octet-stream",
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> tuple[PodMeta, bool]:
        """The object's metadata, and whether it was created."""
        ...

    async def patch(
        self,
        path: PodPath,
        patch: bytes,
        *,
        patch_type: Annotated[str, INTERNAL] = "application/json-patch+json",
        if_match: IfMatch = None,
    ) -> PodMeta: ...

    async def delete(self, path: PodPath, *, if_match: IfMatch = None) -> None: ...

    async def read(
        self,
        path: PodPath,
        *,
        byte_range: Annotated[tuple[int, int | None] | None, INTERNAL] = None,
    ) -> PodObject: ...

    async def head(self, path: PodPath) -> PodMeta: ...

    async def list(
        self, container: str = "", *, limit: PageSize = 100, cursor: Cursor | None = None
    ) -> Page[PodMeta]: ...


class PodEndpoints(Protocol):
    """What the API serves beside the slot."""

    async def options(self, path: PodPath) -> None:
        """The methods and types of a path."""
        ...


RECORDS: Mapping[str, type[Record]] = {"PodMeta": PodMeta}
