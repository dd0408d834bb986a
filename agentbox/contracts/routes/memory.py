"""Routes of the slot memory. A key is one segment of the path: a `/` within it is sent as `%2F`."""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("memory:read",), ("memory:write",)
KEY = "/v1/memory/ns/{ns}/keys/{key}"

MEMORY: tuple[Route, ...] = (
    Route(
        name="store_memory",
        method="PUT",
        path=KEY,
        scope=WRITE,
        handler="memory.store",
        request="StoreBody",
        response="MemoryEntry",
        statuses=(201, 200),
        body_limit=None,
        summary="Stores an entry; 200 when it replaced one.",
    ),
    Route(
        name="retrieve_memory",
        method="GET",
        path=KEY,
        scope=READ,
        handler="memory.retrieve",
        response="MemoryEntry",
        summary="One entry.",
    ),
    Route(
        name="delete_memory",
        method="DELETE",
        path=KEY,
        scope=WRITE,
        handler="memory.delete",
        statuses=(204,),
        summary="Removes an entry.",
    ),
    Route(
        name="list_memory",
        method="GET",
        path="/v1/memory/ns/{ns}/keys",
        scope=READ,
        handler="memory.list_entries",
        response="Page[MemoryEntry]",
        query=("prefix", "filter", "limit", "cursor"),
        summary="Entries of a namespace in order of their keys. `filter` is a filter on metadata, "
        "as JSON.",
    ),
    Route(
        name="search_memory",
        method="POST",
        path="/v1/memory/search",
        scope=READ,
        handler="memory.search",
        request="SearchBody",
        response="Hits",
        body_limit=None,
        summary="The entries that match a query best: by vector, by text, or by both.",
    ),
    Route(
        name="memory_stats",
        method="GET",
        path="/v1/memory/stats",
        scope=READ,
        handler="memory.stats",
        response="MemoryStats",
        query=("namespace",),
        summary="Statistics of the store, or of one namespace.",
    ),
)
