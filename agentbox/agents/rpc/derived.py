"""RPC methods from operation tables: arguments are decoded, an implementation of the Protocol is
called, and its result is encoded."""

from collections.abc import Callable
from typing import Any, TypeVar

from agentbox.adapters.orchestrator.caller_params import caller_of
from agentbox.adapters.runtime import context
from agentbox.contracts.agent_host.rpc import RpcMethod, rpc_methods
from agentbox.contracts.routes.resource import Resource
from agentbox.core.rpc.session import Method, Params, RequestHandler, Session

B = TypeVar("B", bound=RequestHandler)


def derive_methods(
    resource: Resource, implementation: Callable[[B], object]
) -> dict[str, Method[B]]:
    """A method for each operation that returns once; streams and sockets are written by hand.
    `implementation` finds the object with the operations of a session's service."""
    return {
        method.name: _derive(method, implementation)
        for method in rpc_methods(resource).values()
        if method.operation.kind in ("read", "write")
    }


def _derive(method: RpcMethod, implementation: Callable[[B], object]) -> Method[B]:
    name, reads_caller = method.operation.name, bool(method.operation.caller)

    async def handle(session: Session[B], params: Params) -> Any:
        operation = getattr(implementation(session.service), name)
        arguments = method.decode(params)
        if not reads_caller:
            return method.encode_result(await operation(**arguments))
        with context.as_caller(caller_of(params, session.program)):
            return method.encode_result(await operation(**arguments))

    return handle
