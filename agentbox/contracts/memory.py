"""The contract of the memory slot: searchable key/value entries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from agentbox.adapters.runtime.adapter import Page
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Record, Scalar, record

CONTRACT_VERSION = "1.0.0"


@record
class MemoryEntry(Record):
    """One entry of a namespace."""

    namespace: str
    key: str
    value: JsonValue
    text: str
    metadata: Mapping[str, Scalar]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@record
class Hit(Record):
    """A search result, with its scores."""

    entry: MemoryEntry
    score: float
    cosine: float | None
    bm25: float | None


@record
class MemoryStats(Record):
    """Statistics of the store. `quotas` are per namespace."""

    entries: int
    bytes: int
    namespaces: tuple[str, ...]
    model_id: str
    dims: int
    quotas: Mapping[str, int]


class Embedder(Protocol):
    """Converts texts to float32 little-endian vectors of norm 1, or all zero if there are no
    tokens.
    """

    model_id: str
    dims: int

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]: ...


class Memory(Protocol):
    """The slot. Clauses M1 to M12."""

    async def store(
        self,
        key: str,
        value: JsonValue,
        *,
        namespace: str = "default",
        text: str | None = None,
        metadata: Mapping[str, Scalar] = EMPTY,
        ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]: ...

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None: ...

    async def search(
        self,
        query: str,
        *,
        namespaces: tuple[str, ...] = ("default",),
        limit: int = 10,
        mode: Literal["hybrid", "vector", "text"] = "hybrid",
        filter: JsonObj = EMPTY,
        min_cosine: float | None = None,
    ) -> tuple[Hit, ...]: ...

    async def delete(self, key: str, *, namespace: str = "default") -> bool: ...

    async def list(
        self,
        *,
        namespace: str = "default",
        prefix: str = "",
        filter: JsonObj = EMPTY,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MemoryEntry]: ...

    async def stats(self, namespace: str | None = None) -> MemoryStats: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (MemoryEntry, Hit, MemoryStats)
}
