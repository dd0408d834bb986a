"""Names that code has from operations: methods of agent-host, their arguments, and where these are
used."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from frozen.sources import AGENT_HOST, AGENTS, AgentHandle, operation_rpc

METHODS: Final = tuple(
    method for one in (AGENTS, AGENT_HOST) for method in operation_rpc.rpc_methods(one).values()
)


def _of(resource: Any, *operations: str) -> Iterator[operation_rpc.RpcMethod]:
    return map(partial(operation_rpc.rpc_method, resource), operations)


def _arguments(resource: Any, *operations: str) -> Iterator[str]:
    """Names of arguments; an AgentHandle is a record of its own."""
    for method in _of(resource, *operations):
        yield from (name for name, kind in method.types.items() if kind is not AgentHandle)


# Members of documents and messages where code is derived from tables: place -> names.
_CALLS: Final = ("spawn", "run_once", "list", "get", "signal", "terminate", "revoke")
OF_OPERATIONS: Final[Mapping[str, frozenset[str]]] = {
    "agent-host RPC": frozenset(
        (*_arguments(AGENTS, *_CALLS, "stream"), *_arguments(AGENT_HOST, "read_record"))
    ),
    "agent-host RPC by a bridge": frozenset(
        (
            *("admin", "principal", "trace_id"),
            *(method.name for method in _of(AGENTS, *_CALLS)),
            *(member for method in _of(AGENTS, *_CALLS) for member in method.members),
        )
    )
    - {"attached"},
    "HTTP answers of another shape": frozenset(
        _arguments(AGENT_HOST, "list_states", "show_review", "decide_approval")
    ),
}
