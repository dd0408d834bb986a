"""Operations as JSON-RPC methods of agent-host: what signature and row say about the wire. An
argument is the member of `params` with its name, and an AgentHandle is sent as its members. A
result is a record; several are the member `items`, none is an empty object.
"""

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any, Literal, get_args, get_origin, get_type_hints

from agentbox.contracts.orchestrator import AgentHandle
from agentbox.contracts.routes.operation import INTERNAL, Operation
from agentbox.contracts.routes.resource import Resource
from agentbox.core.records.wire import from_wire, to_wire
from agentbox.core.slot_errors import ValidationError

_USUAL_SECONDS = 10.0  # the transport decides about shorter deadlines
_MARGIN_SECONDS = 5.0  # so that whoever limits the operation itself reports it first
_MEMBERS = ("agent_id", "generation")  # of an AgentHandle


class RpcMethod:
    """One operation, for both ends of a connection. `types` are those of its arguments."""

    def __init__(self, resource: Resource, operation: Operation) -> None:
        self.name, self.operation = operation.rpc, operation
        self._signature = resource.signature(operation.name)
        self.types = get_type_hints(getattr(resource.protocol, operation.name))
        returned = self.types.pop("return")
        self.result = get_args(returned)[0] if operation.is_stream else returned
        self.has_items = get_origin(self.result) is tuple
        parameters = self._signature.parameters.items()
        self._defaults = {
            name: parameter.default for name, parameter in parameters if name in self.types
        }
        self.internal = frozenset(
            name for name, parameter in parameters if INTERNAL in get_args(parameter.annotation)
        )

    @property
    def members(self) -> tuple[str, ...]:
        """The members of `params` that are arguments."""
        each = (
            (name,) if kind is not AgentHandle else _MEMBERS for name, kind in self.types.items()
        )
        return tuple(chain.from_iterable(each))

    @property
    def result_name(self) -> str:
        """What the result is, for errors."""
        return getattr(self.result, "__name__", str(self.result))

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments of a call, by name. Raises TypeError."""
        bound = self._signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        return {name: bound.arguments[name] for name in self.types}

    def encode(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """`params` of a call. Internal arguments are sent only if they are set."""
        params: dict[str, Any] = {}
        for name, value in arguments.items():
            if self.types[name] is AgentHandle:
                params |= to_wire(value)
            elif value or name not in self.internal:
                params[name] = to_wire(value)
        return params

    def decode(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call; other members are ignored. Raises KeyError for a missing one,
        and ValidationError."""
        return {name: self._argument(name, kind, params) for name, kind in self.types.items()}

    def encode_result(self, value: Any) -> Any:
        """The result of a call; records are encoded with the message."""
        if self.result is type(None):
            return {}
        return {"items": value} if self.has_items else value

    def decode_result(self, data: Any) -> Any:
        """Raises ValidationError."""
        if self.result is type(None):
            return None
        if self.has_items and isinstance(data, Mapping):
            data = data.get("items")
        return from_wire(self.result, data)

    def seconds(self, arguments: Mapping[str, Any], grace_s: float) -> float | None:
        """The deadline of a call; None for a usual one. `grace_s` is the grace period of agents."""
        row = self.operation
        if not row.deadline_from:
            return row.deadline_s if row.deadline_s > _USUAL_SECONDS else None
        value = arguments[row.deadline_from]
        return row.deadline_s + (grace_s if value is None else value) + _MARGIN_SECONDS

    def _argument(self, name: str, kind: Any, params: Mapping[str, Any]) -> Any:
        if kind is AgentHandle:
            return AgentHandle(
                agent_id=from_wire(str, params["agent_id"]),
                generation=from_wire(int, params["generation"]),
            )
        if name not in params and self._defaults[name] is not self._signature.empty:
            return self._defaults[name]
        value = params[name]
        if get_origin(kind) is Literal and value not in get_args(kind):
            detail = f"must be one of {', '.join(get_args(kind))}"
            errors = [{"pointer": f"/{name}", "detail": detail}]
            raise ValidationError(f"invalid /{name}: {detail}", errors=errors)
        return from_wire(kind, value)


def rpc_method(resource: Resource, name: str) -> RpcMethod:
    """One operation, by its name in the Protocol."""
    return rpc_methods(resource)[name]


@cache
def rpc_methods(resource: Resource) -> Mapping[str, RpcMethod]:
    """The operations of a resource that are served over JSON-RPC, by the names of its Protocol."""
    return {row.name: RpcMethod(resource, row) for row in resource.operations if row.rpc}
