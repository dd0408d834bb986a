"""The contract of the memory slot: searchable key/value entries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

from agentbox.contracts.arguments import PAGE_BOUNDS, Cursor, PageSize
from agentbox.contracts.routes.operation import sent_as
from agentbox.core.records.bounds import bounded_text, item_count, number_range, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Record, Scalar, record

CONTRACT_VERSION = "1.0.0"
MAX_KEY = 512  # bytes
MAX_VALUE = 256 << 10  # bytes of JSON, and bytes of text
MAX_METADATA = 32  # keys
MAX_QUERY = 8 << 10  # characters
MAX_NAMESPACES = 64  # per search
MAX_TTL = 10 * 366 * 86400  # seconds
LIMIT = PAGE_BOUNDS  # a page of `list`
HIT_LIMIT = (1, 100)
NAMESPACE = r"^[a-z0-9][a-z0-9._:-]{0,127}$"
MAX_CONDITIONS = 32
MAX_CHOICES = 100

_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_ORDERED = {"type": ["string", "number"]}
FILTER: Mapping[str, Any] = {
    "type": "object",
    "maxProperties": MAX_CONDITIONS,
    "additionalProperties": {
        "anyOf": [
            _SCALAR,
            {
                "type": "object",
                "properties": {
                    "in": {
                        "type": "array",
                        "items": _SCALAR,
                        "minItems": 1,
                        "maxItems": MAX_CHOICES,
                    },
                    "ne": _SCALAR,
                    **dict.fromkeys(("gt", "gte", "lt", "lte"), _ORDERED),
                    "exists": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
        ]
    },
}

Key = Annotated[
    str,
    bounded_text(minimum=1, maximum=MAX_KEY),
    schema_keywords(description="A `/` within it is sent as `%2F`."),
]
Namespace = Annotated[str, bounded_text(pattern=NAMESPACE)]
InNamespace = Annotated[Namespace, sent_as("ns")]
Filter = Annotated[JsonObj, schema_keywords(**FILTER)]


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
class Hits(Record):
    hits: tuple[Hit, ...]


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
        key: Key,
        value: JsonValue,
        *,
        namespace: InNamespace = "default",
        text: Annotated[str | None, bounded_text(maximum=MAX_VALUE)] = None,
        metadata: Annotated[
            Mapping[str, Scalar], schema_keywords(maxProperties=MAX_METADATA)
        ] = EMPTY,
        ttl_s: Annotated[int | None, number_range(1, MAX_TTL)] = None,
    ) -> tuple[MemoryEntry, bool]:
        """`text` is searched; by default the strings of the value. `ttl_s` None: no expiry."""
        ...

    async def retrieve(
        self, key: Key, *, namespace: InNamespace = "default"
    ) -> MemoryEntry | None: ...

    async def delete(self, key: Key, *, namespace: InNamespace = "default") -> bool: ...

    async def list(
        self,
        *,
        namespace: InNamespace = "default",
        prefix: str = "",
        filter: Filter = EMPTY,
        limit: PageSize = 100,
        cursor: Cursor | None = None,
    ) -> Page[MemoryEntry]: ...

    async def search(
        self,
        query: Annotated[str, bounded_text(maximum=MAX_QUERY)],
        *,
        namespaces: Annotated[
            tuple[Namespace, ...], item_count(minimum=1, maximum=MAX_NAMESPACES)
        ] = ("default",),
        limit: Annotated[int, number_range(*HIT_LIMIT)] = 10,
        mode: Literal["hybrid", "vector", "text"] = "hybrid",
        filter: Filter = EMPTY,
        min_cosine: Annotated[float | None, number_range(-1, 1)] = None,
    ) -> tuple[Hit, ...]:
        """`filter` is a filter on metadata; `min_cosine` excludes entries that are less similar."""
        ...

    async def stats(self, namespace: Namespace | None = None) -> MemoryStats: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (MemoryEntry, Hit, MemoryStats)
}
