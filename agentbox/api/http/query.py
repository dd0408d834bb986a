"""Query strings, and the values in them."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, get_args, get_origin
from urllib.parse import parse_qsl

from agentbox.contracts.routes.operation import RequestMember
from agentbox.contracts.routes.resource import split_annotation
from agentbox.core.http.problems import invalid
from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import JsonObj

INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")

# The value of a parameter's text. Raises ValidationError.
Parser = Callable[[str], Any]


def parse_query(raw: bytes, names: Collection[str]) -> dict[str, str]:
    """The parameters of a query string. Starlette's parser would replace invalid UTF-8 and merge
    repeated names. Raises ValidationError for those, and for a name that is not in `names`.
    """
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise invalid("?", "is not valid UTF-8") from None
    if unknown := [name for name, _ in pairs if name not in names]:
        raise invalid(f"?{unknown[0]}", "is unknown")
    if len(query := dict(pairs)) < len(pairs):
        raise invalid("?", "has a duplicate parameter")
    return query


def query_value(member: RequestMember) -> Callable[[Mapping[str, str]], Any]:
    """Reads one parameter of a query; the default when it is absent. Raises ValidationError."""
    name, parse = member.name, _parser(member)

    def read(query: Mapping[str, str]) -> Any:
        text = query.get(name)
        if text is not None:
            return parse(text)
        if member.required:
            raise invalid(f"?{name}", "is missing")
        return member.default

    return read


def _parser(member: RequestMember) -> Parser:
    """A list is one text, separated by commas; an object is a JSON document."""
    kind, keywords = split_annotation(member.annotation)
    pointer = f"?{member.name}"
    if kind is int:
        return _integer(pointer, keywords["minimum"], keywords["maximum"])
    if kind is float:
        return _number(pointer, keywords["minimum"], keywords["maximum"])
    if kind is bool:
        return _boolean(pointer)
    if kind is JsonObj:
        return _object(pointer)
    if get_origin(kind) is Literal:
        return _choice(pointer, get_args(kind))
    if get_origin(kind) is tuple:
        return lambda text: tuple(item for item in text.split(",") if item)
    return str


def _choice(pointer: str, choices: tuple[str, ...]) -> Parser:
    def parse(text: str) -> str:
        if text not in choices:
            raise invalid(pointer, f"must be one of {', '.join(choices)}")
        return text

    return parse


def _integer(pointer: str, low: int, high: int) -> Parser:
    def parse(text: str) -> int:
        if not INTEGER.fullmatch(text) or not low <= int(text) <= high:
            raise invalid(pointer, f"must be an integer from {low} to {high}")
        return int(text)

    return parse


def _number(pointer: str, low: float, high: float) -> Parser:
    def parse(text: str) -> float:
        if not _NUMBER.fullmatch(text) or not low <= float(text) <= high:
            raise invalid(pointer, f"must be a number from {low:g} to {high:g}")
        return float(text)

    return parse


def _boolean(pointer: str) -> Parser:
    def parse(text: str) -> bool:
        if text not in ("true", "false"):
            raise invalid(pointer, "must be true or false")
        return text == "true"

    return parse


def _object(pointer: str) -> Parser:
    def parse(text: str) -> Mapping[str, Any]:
        try:
            value = read_json(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise invalid(pointer, "must be a JSON object")
        return value

    return parse
