"""The words that the kinds of providers share: a call, a refusal, a usage."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

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
    """A request that the gateway answers itself, in the provider's own error shape. `rule` counts it as a refusal; "" = none.

    `message` goes to the agent: it holds no key, and of the request only what the agent wrote itself.
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
        self.retry_after = retry_after  # seconds after which it is worth to try again; 0 = unknown


@dataclass(frozen=True, kw_only=True)
class VendorCall:
    """One of the calls that pass. `path` follows the provider's base URL. `model` is "" where the body names it."""

    name: str
    path: str
    model: str = ""
    body: bool = True
    generates: bool = False  # has an output whose length is bounded and counted
    counts_input: bool = False  # uses tokens for what it is given
    streams: bool = False  # always; else where the body says `stream`
    lists: bool = False  # answers with models


@dataclass(slots=True)
class Usage:
    """Tokens as the provider counts them; None where it has not said. `final`: it says no more after this."""

    input: int | None = None
    output: int | None = None
    final: bool = False

    def add(self, other: "Usage | None") -> None:
        """Takes in what a later event says: providers repeat sums, so that the larger number is the present one."""
        if other is not None:
            self.input = _larger(self.input, other.input)
            self.output = _larger(self.output, other.output)
            self.final = self.final or other.final


def _larger(first: int | None, second: int | None) -> int | None:
    return max((n for n in (first, second) if n is not None), default=None)


@dataclass(slots=True)
class ScreenedBody:
    """What is left to ask about a body that may pass: `urls` that it makes the provider fetch."""

    urls: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class VendorProtocol:
    """What the gateway knows of one wire protocol. Bodies are JSON objects and are changed in place."""

    find_call: Callable[[str, str], VendorCall | None]  # method, path below /llm/<provider>
    screen: Callable[
        [VendorCall, dict[str, Any]], ScreenedBody
    ]  # raises Answer; switches storing off
    max_output: Callable[
        [VendorCall, dict[str, Any]], int | None
    ]  # output cap that the body has, for one answer
    choices: Callable[[dict[str, Any]], int]  # how many answers it asks for
    set_max_output: Callable[
        [VendorCall, dict[str, Any], int], None
    ]  # sets the output cap of one answer; raises Answer
    request_usage: Callable[
        [VendorCall, dict[str, Any]], bool
    ]  # asks for usage in a stream; True = its event is not for the agent
    usage: Callable[[Mapping[str, Any]], Usage | None]  # of an answer or of one event of a stream
    is_usage_only: Callable[[Mapping[str, Any]], bool]  # the event that only `ask_usage` brought
    format_error: Callable[[int, Reason, str, float], bytes]
    auth_headers: Callable[[str], tuple[tuple[bytes, bytes], ...]]
    headers: tuple[
        bytes, ...
    ]  # of a request, passed on besides content-type, accept and user-agent
    query_parameters: tuple[str, ...]  # parameters that pass
    filter_models: Callable[
        [dict[str, Any], Callable[[str], bool]], None
    ]  # keeps of a list of models what the test allows


def forbidden_part(part: str) -> ModelGatewayError:
    """A part of a body that would make the provider fetch, run or keep something."""
    return ModelGatewayError(
        "forbidden",
        f"{part} is not allowed here: it makes the provider fetch, run or keep something outside of the box",
        rule="llm:part",
        detail=part,
    )


MAX_TOKENS: Final = 1 << 40
"""Of one count; a provider that tells more is taken at this, so that sums of it fit into 64 bits."""


def is_present(value: Any) -> bool:
    """Whether a member asks for something: an empty object does, as it takes all defaults; false, "" and [] do not."""
    return value is not None and value is not False and value not in ("", [])


def check_spelling(holder: Mapping[str, Any], names: Collection[str]) -> None:
    """Raises Answer for a member that some parsers of JSON take for one of `names`, and others do not: by its case."""
    folded = _case_folded(frozenset(names))
    for name in holder:
        if name not in names and name.casefold().replace("_", "") in folded:
            raise ModelGatewayError(
                "forbidden",
                f"the member {name[:64]} has a spelling that is not the vendor's",
                rule="llm:part",
            )


@cache
def _case_folded(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name.replace("_", "") for name in names)


def token_count(value: Any) -> int | None:
    """A count of tokens, None for anything else."""
    return (
        min(value, MAX_TOKENS)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0
        else None
    )


def positive_int(body: Mapping[str, Any], name: str) -> int | None:
    """A member that is a whole number above zero, None where it is absent or null. Raises Answer for anything else."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelGatewayError("invalid", f"{name} must be a whole number above zero")
    return value


def objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The objects of a list, () where it is absent. Raises Answer where it is no list of objects."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ModelGatewayError("invalid", "a list of objects was expected")
    return tuple(value)


def walk(
    value: Any, opaque: Callable[[Mapping[str, Any]], tuple[str, ...]]
) -> Iterator[dict[str, Any]]:
    """Every object in a tree, but for what is below the members that `opaque` names: data of tools, whatever it holds."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            excluded = opaque(node)
            stack.extend(item for name, item in node.items() if name not in excluded)
        elif isinstance(node, list):
            stack.extend(node)
