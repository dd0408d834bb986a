"""Operations of the slot memory. A key is one segment of the path: a `/` within it is sent as
`%2F`.
"""

from functools import partial

from agentbox.contracts.memory import Memory
from agentbox.contracts.routes import operation
from agentbox.contracts.routes.operation import WITHOUT_TOOL, tool
from agentbox.contracts.routes.resource import Resource

_KEY = "/v1/memory/ns/{ns}/keys/{key}"
_read = partial(operation.read, deadline_s=10)
_write = partial(operation.write, deadline_s=10, idempotent=True, audit=True)
_NAMESPACE = ("ns",)  # that of the agent's state, set by the gateway

MEMORY = Resource(
    "memory",
    Memory,
    operations=(
        _write(
            "store",
            f"PUT {_KEY}",
            "Stores an entry; 200 when it replaced one.",
            route="store_memory",
            statuses=(201, 200),
            redact=("/text", "/value/**", "/metadata/**"),
            identifiers=("/key",),
            agent=tool("memory/store", "Stores an entry in your namespace.", without=_NAMESPACE),
        ),
        _read(
            "retrieve",
            f"GET {_KEY}",
            "One entry.",
            route="retrieve_memory",
            agent=tool("memory/retrieve", "Returns one of your entries.", without=_NAMESPACE),
        ),
        _write(
            "delete",
            f"DELETE {_KEY}",
            "Removes an entry.",
            route="delete_memory",
            statuses=(204,),
            agent=tool("memory/delete", "Deletes one of your entries.", without=_NAMESPACE),
        ),
        _read(
            "list",
            "GET /v1/memory/ns/{ns}/keys",
            "Entries of a namespace in order of their keys. `filter` is a filter on metadata, as "
            "JSON.",
            route="list_memory",
            agent=tool("memory/list", "Lists your entries by key.", without=("ns", "filter")),
        ),
        _read(
            "search",
            "POST /v1/memory/search",
            "The entries that match a query best: by vector, by text, or by both.",
            route="search_memory",
            response="Hits",
            redact=("/query",),
            agent=tool(
                "memory/search",
                "Searches your entries: by meaning, by words, or both (mode hybrid, vector, text).",
                without=("namespaces",),
            ),
        ),
        _read(
            "stats",
            "GET /v1/memory/stats",
            "Statistics of the store, or of one namespace.",
            route="memory_stats",
            agent=WITHOUT_TOOL,
        ),
    ),
)
RESOURCES = (MEMORY,)
