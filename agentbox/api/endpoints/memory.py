"""Memory over HTTP."""

from agentbox.api.auth.bindings import check_namespace
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.bodies import Hits, SearchBody, StoreBody
from agentbox.contracts.memory import Memory
from agentbox.core.http.problems import invalid
from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import NotFound

DEFAULT_PAGE = 100
LIMIT = (1, 500)


def _memory(call: Call) -> Memory:
    return call.services.slots.memory


def _namespace(call: Call) -> str:
    """Raises PermissionDenied outside the namespaces that the token is bound to."""
    check_namespace(call.caller, call.parameters["ns"])
    return call.parameters["ns"]


async def store(call: Call) -> Reply:
    """201 when it was created, 200 when it replaced an entry."""
    body, namespace = call.record(StoreBody), _namespace(call)
    entry, created = await _memory(call).store(
        call.parameters["key"],
        body.value,
        namespace=namespace,
        text=body.text,
        metadata=body.metadata,
        ttl_s=body.ttl_s,
    )
    return Reply(entry, status=201 if created else 200)


async def retrieve(call: Call) -> Reply:
    entry = await _memory(call).retrieve(call.parameters["key"], namespace=_namespace(call))
    if entry is None:
        raise _unknown(call)
    return Reply(entry)


async def delete(call: Call) -> Reply:
    if not await _memory(call).delete(call.parameters["key"], namespace=_namespace(call)):
        raise _unknown(call)
    return Reply(status=204)


def _unknown(call: Call) -> NotFound:
    return NotFound("cannot find this entry", resource="memory", id=call.parameters["key"])


async def list_entries(call: Call) -> Reply:
    """`filter` is a filter as in `search`."""
    page = await _memory(call).list(
        namespace=_namespace(call),
        prefix=call.query.get("prefix", ""),
        filter=_filter(call),
        limit=call.integer("limit", DEFAULT_PAGE, *LIMIT),
        cursor=call.query.get("cursor"),
    )
    return Reply(page)


def _filter(call: Call) -> JsonObj:
    try:
        value = read_json(call.query.get("filter", "{}"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise invalid("?filter", "must be a JSON object")
    return value


async def search(call: Call) -> Reply:
    """The response reveals nothing about entries that the query does not match."""
    body = call.record(SearchBody)
    for namespace in body.namespaces:
        check_namespace(call.caller, namespace)
    hits = await _memory(call).search(
        body.query,
        namespaces=body.namespaces,
        limit=body.limit,
        mode=body.mode,
        filter=body.filter,
        min_cosine=body.min_cosine,
    )
    return Reply(Hits(hits=hits))


async def stats(call: Call) -> Reply:
    """Of one namespace, or of all. A bound token must ask for its own."""
    namespace = call.query.get("namespace")
    check_namespace(call.caller, namespace or "")
    return Reply(await _memory(call).stats(namespace))
