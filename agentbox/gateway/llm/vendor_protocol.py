"""Types shared by the vendor protocols: calls, errors, usage."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

from agentbox.core.frozen import frozen

Reason = Literal[
    "invalid",
    "token",
    "forbidden",
    "missing",
    "large",
    "budget",
    "overloaded",
    "provider",
    "late",
    "unavailable",
]
STATUS: Final[Mapping[str, int]] = {
    "invalid": 400,
    "token": 401,
    "forbidden": 403,
    "missing": 404,
    "large": 413,
    "budget": 429,
    "overloaded": 503,
    "provider": 502,
    "late": 504,
    "unavailable": 503,
}


class ModelGatewayError(Exception):
    """An error response of the gateway, in the provider's format. A `rule` counts it as a denial;
    "": it is none.

    `message` goes to the agent: it contains no key, and only the agent's own text of the request.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        rule: str = "",
        detail: str = "",
        retry_after: float = 0,
    ) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
        self.rule = rule
        self.detail = detail
        self.retry_after = retry_after  # seconds until a retry makes sense; 0 = unknown


@frozen
class VendorCall:
    """An allowed call. `path` is appended to the provider's base URL. `model` is "" if the body
    contains it."""

    name: str
    path: str
    model: str = ""
    body: bool = True
    generates: bool = False  # its output is limited and counted
    counts_input: bool = False  # its input is counted
    streams: bool = False  # always; otherwise if the body sets `stream`
    lists: bool = False  # returns a list of models


@dataclass(slots=True)
class Usage:
    """Token counts of the provider; None if unknown. `input` includes `cache_read` and
    `cache_write`. `final`: no further count follows. `replaces`: the counts of the whole response
    so far, instead of all earlier ones."""

    input: int | None = None
    output: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    final: bool = False
    replaces: bool = False

    def add(self, other: "Usage | None") -> None:
        """Merges a later event. Providers repeat totals, so the larger number is the current
        one, unless the event replaces the earlier ones."""
        if other is not None and other.replaces:
            self.input = self.input if other.input is None else other.input
            self.output = self.output if other.output is None else other.output
            self.cache_read, self.cache_write = other.cache_read, other.cache_write
            self.final = self.final or other.final
        elif other is not None:
            self.input = _larger(self.input, other.input)
            self.output = _larger(self.output, other.output)
            self.cache_read = max(self.cache_read, other.cache_read)
            self.cache_write = max(self.cache_write, other.cache_write)
            self.final = self.final or other.final


def _larger(first: int | None, second: int | None) -> int | None:
    return max((n for n in (first, second) if n is not None), default=None)


@dataclass(slots=True)
class ScreenedBody:
    """Remaining checks of an accepted body: `urls` that the provider would fetch."""

    urls: list[str] = field(default_factory=list)


@frozen
class VendorProtocol:
    """The wire protocol of a vendor. Bodies are JSON objects, modified in place."""

    find_call: Callable[[str, str], VendorCall | None]  # method, path below /llm/<provider>
    screen: Callable[
        [VendorCall, dict[str, Any]], ScreenedBody
    ]  # raises ModelGatewayError; disables storing
    max_output: Callable[
        [VendorCall, dict[str, Any]], int | None
    ]  # output cap of one choice in the body
    choices: Callable[[dict[str, Any]], int]  # number of requested choices
    set_max_output: Callable[
        [VendorCall, dict[str, Any], int], None
    ]  # sets the output cap of one choice; raises ModelGatewayError
    request_usage: Callable[
        [VendorCall, dict[str, Any]], bool
    ]  # requests usage in a stream; True = hide its event from the agent
    usage: Callable[[Mapping[str, Any]], Usage | None]  # of a response or of one stream event
    is_usage_only: Callable[[Mapping[str, Any]], bool]  # the event caused by `request_usage`
    last_usage_is_final: bool  # of a complete stream: any event may hold usage, the last one counts
    format_error: Callable[[int, Reason, str, float], bytes]
    auth_headers: Callable[[str], tuple[tuple[bytes, bytes], ...]]
    priced: Mapping[
        str, tuple[str, ...]
    ]  # members that change the price, with their values at the listed one
    headers: tuple[bytes, ...]  # forwarded besides content-type, accept and user-agent
    query_parameters: tuple[str, ...]  # forwarded parameters
    filter_models: Callable[
        [dict[str, Any], Callable[[str], bool]], None
    ]  # keeps the allowed entries of a list of models


def forbidden_content(content: str) -> ModelGatewayError:
    """The error for content of a body that makes the provider fetch, run or store something."""
    return ModelGatewayError(
        "forbidden",
        f"{content} is not allowed here: it makes the provider fetch, run or store something "
        "outside the box",
        rule="llm:part",
        detail=content,
    )


MAX_TOKENS: Final = 1 << 40
"""Upper bound of a token count, so that sums fit into 64 bits."""


def is_present(value: Any) -> bool:
    """Whether a member has an effect: an empty object does, since it selects defaults; false, ""
    and [] do not."""
    return value is not None and value is not False and value not in ("", [])


def check_spelling(holder: Mapping[str, Any], names: Collection[str]) -> None:
    """Rejects members that only some JSON parsers treat as one of `names`, by their case. Raises
    ModelGatewayError."""
    folded = _case_folded(frozenset(names))
    for name in holder:
        if name not in names and name.casefold().replace("_", "") in folded:
            raise ModelGatewayError(
                "forbidden",
                f"the member {name[:64]} is not written as the vendor does",
                rule="llm:part",
            )


@cache
def _case_folded(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name.replace("_", "") for name in names)


def token_count(value: Any) -> int | None:
    """A token count; None for an invalid value."""
    return (
        min(value, MAX_TOKENS)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0
        else None
    )


def count_at(holder: Mapping[str, Any], member: str, name: str) -> int:
    """The token count `name` in the object `member`; 0 if there is none."""
    inner = holder.get(member)
    return (token_count(inner.get(name)) or 0) if isinstance(inner, dict) else 0


def positive_int(body: Mapping[str, Any], name: str) -> int | None:
    """A positive integer; None if absent or null. Raises ModelGatewayError otherwise."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelGatewayError("invalid", f"{name} must be a positive integer")
    return value


def objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    """A list of objects; () if absent. Raises ModelGatewayError for anything else."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ModelGatewayError("invalid", "expected a list of objects")
    return tuple(value)


def walk(
    value: Any, opaque: Callable[[Mapping[str, Any]], tuple[str, ...]]
) -> Iterator[dict[str, Any]]:
    """Yields every object in a tree, except below the members named by `opaque`, which hold tool
    data."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            excluded = opaque(node)
            stack.extend(item for name, item in node.items() if name not in excluded)
        elif isinstance(node, list):
            stack.extend(node)
