"""Memory over HTTP."""

from starlette.responses import Response

from agentbox.adapters.runtime.adapter import Page
from agentbox.api.auth.bindings import check_namespace
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.bodies import SearchBody, StoreBody
from agentbox.contracts.memory import Hits, Memory, MemoryEntry, MemoryStats
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import RecordResponse
from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import NotFound

DEFAULT_PAGE = 100
LIMIT = (1, 500)


def _memory(request: ApiRequest) -> Memory:
    return request.services.slots.memory


def _namespace(request: ApiRequest) -> str:
    """Raises PermissionDenied outside the namespaces that the token is bound to."""
    check_namespace(request.caller, request.parameters["ns"])
    return request.parameters["ns"]


async def store(request: ApiRequest) -> Response:
    """201 when it was created, 200 when it replaced an entry."""
    body, namespace = request.record(StoreBody), _namespace(request)
    entry, created = await _memory(request).store(
        request.parameters["key"],
        body.value,
        namespace=namespace,
        text=body.text,
        metadata=body.metadata,
        ttl_s=body.ttl_s,
    )
    return RecordResponse(entry, 201 if created else 200)


async def retrieve(request: ApiRequest) -> MemoryEntry:
    entry = await _memory(request).retrieve(
        request.parameters["key"], namespace=_namespace(request)
    )
    if entry is None:
        raise _unknown(request)
    return entry


async def delete(request: ApiRequest) -> None:
    if not await _memory(request).delete(request.parameters["key"], namespace=_namespace(request)):
        raise _unknown(request)


def _unknown(request: ApiRequest) -> NotFound:
    return NotFound("cannot find this entry", resource="memory", id=request.parameters["key"])


async def list_entries(request: ApiRequest) -> Page[MemoryEntry]:
    """`filter` is a filter as in `search`."""
    return await _memory(request).list(
        namespace=_namespace(request),
        prefix=request.query.get("prefix", ""),
        filter=_filter(request),
        limit=request.integer("limit", DEFAULT_PAGE, *LIMIT),
        cursor=request.query.get("cursor"),
    )


def _filter(request: ApiRequest) -> JsonObj:
    try:
        value = read_json(request.query.get("filter", "{}"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise invalid("?filter", "must be a JSON object")
    return value


async def search(request: ApiRequest) -> Hits:
    """The response reveals nothing about entries that the query does not match."""
    body = request.record(SearchBody)
    for namespace in body.namespaces:
        check_namespace(request.caller, namespace)
    hits = await _memory(request).search(
        body.query,
        namespaces=body.namespaces,
        limit=body.limit,
        mode=body.mode,
        filter=body.filter,
        min_cosine=body.min_cosine,
    )
    return Hits(hits=hits)


async def stats(request: ApiRequest) -> MemoryStats:
    """Of one namespace, or of all. A bound token must ask for its own."""
    namespace = request.query.get("namespace")
    check_namespace(request.caller, namespace or "")
    return await _memory(request).stats(namespace)
