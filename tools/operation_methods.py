"""The source of one client method, from the row and the signature of its operation."""

import re
import textwrap
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.routes.records_by_name import RECORDS_BY_NAME
from agentbox.contracts.routes.resource import Resource
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, JsonValue, Scalar

from operation_parameters import IDEMPOTENCY_KEY, Parameter, parameters

_STATUSES: Final = re.compile(r"; 20\d [^.]*\.")  # the result has them in another form
_EXTRA_WAIT: Final = 10.0  # seconds, added to a time that the box waits for
_MAX_GRACE: Final = 60.0  # seconds, the longest that a box may use by default
_DEFAULT_WAIT: Final = 10.0  # seconds that a client waits without being told
_PLAIN: Final = {str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes"}


class Imports(dict[str, set[str]]):
    """Names by module."""

    def add(self, kind: type) -> str:
        """Imports a class; returns its name."""
        self.setdefault(kind.__module__, set()).add(kind.__name__)
        return kind.__name__

    def update(self, other: Mapping[str, set[str]]) -> None:  # type: ignore[override]
        for module, names in other.items():
            self.setdefault(module, set()).update(names)

    def text(self, indent: str) -> str:
        """One statement per module."""
        return "".join(
            f"{indent}from {module} import {', '.join(sorted(names))}\n"
            for module, names in sorted(self.items())
        )


class Method:
    """The source of a method. On the box itself it has the name of the route."""

    def __init__(self, resource: Resource, row: Operation, *, is_box: bool) -> None:
        self._resource, self._row, self._is_box = resource, row, is_box
        self._route = next(
            route for route in resource.routes if route.name == (row.route or row.name)
        )
        self._signature = resource.signature(row.name)
        self.imports = Imports()  # of annotations
        self._decoded = Imports()
        self._parameters = sorted(parameters(resource, row), key=lambda one: one.keyword)

    def text(self) -> str:
        """The method, indented by four spaces."""
        if self._row.kind == "socket":
            lines = self._socket()
        elif self._row.is_stream:
            lines = self._stream()
        else:
            lines = self._call()
        return textwrap.indent("\n".join(lines), "    ") + "\n"

    def _name(self) -> str:
        if self._is_box:
            return self._route.name
        return "list" if self._row.name == f"list_{self._resource.name}" else self._row.name

    def _head(self, result: str, *more: str) -> list[str]:
        words = ["self"]
        keyword = False
        for one in self._parameters:
            if one.keyword and not keyword:
                keyword = True
                words.append("*")
            words.append(self._parameter(one))
        if more and not keyword:
            words.append("*")
        return [
            f"async def {self._name()}({', '.join([*words, *more])}) -> {result}:",
            *self._docstring(),
        ]

    def _parameter(self, one: Parameter) -> str:
        annotation = self._type(one.annotation)
        if one.required:
            return f"{one.name}: {annotation}"
        default = None if isinstance(one.default, Mapping) else one.default
        if default is None and not annotation.endswith("| None") and annotation != "Any":
            annotation += " | None"
        return f"{one.name}: {annotation} = {default!r}"

    def _docstring(self) -> list[str]:
        text = _STATUSES.sub(".", self._row.summary)
        if any(one.wire == IDEMPOTENCY_KEY for one in self._parameters):
            text += " The same `request_id` has one effect."
        lines = textwrap.wrap(f'"""{text}"""', 92)
        return [f"    {line}" for line in lines]

    def _call(self) -> list[str]:
        result, ending = self._result()
        accepted = (503,) if 503 in self._row.statuses else ()
        if "decode_optional" in ending or "is_success" in ending:
            accepted = (404,) if 204 not in self._row.statuses or result == "bool" else accepted
        request = f"await {self._box}.request({self._arguments(accepted)})"
        body = [request] if not ending else [f"response = {request}", *ending.splitlines()]
        imports = self._decoded.text("").splitlines()
        return [*self._head(result), *(f"    {line}" for line in (*imports, *body))]

    def _stream(self) -> list[str]:
        item = get_args(self._signature.return_annotation)[0]
        name, read = self._decode(item), "decode_event({}, event)"
        result, value, last = name, read.format(name), ""
        if self._row.last:
            end = self._decode(RECORDS_BY_NAME[self._row.last])
            result, last = f"{name} | {end}", self._row.last.lower()
            value = f'{read.format(end)} if event.event == "{last}" else {value}'
        arguments = self._arguments(()) + (f', last="{last}"' if last else "")
        return [
            *self._head(f"AsyncIterator[{result}]", "reconnect_timeout: float = 60.0"),
            *(f"    {line}" for line in self._decoded.text("").splitlines()),
            f"    events = {self._box}.stream({arguments}, reconnect_timeout=reconnect_timeout)",
            "    async for event in events:",
            f"        yield {value}",
        ]

    def _socket(self) -> list[str]:
        self.imports.setdefault("agentbox.client.async_client.attach", set()).add("AsyncAttached")
        return [
            "@asynccontextmanager",
            *self._head("AsyncIterator[AsyncAttached]"),
            f"    attached = await {self._box}.open_socket({self._arguments(())})",
            "    try:",
            "        yield attached",
            "    finally:",
            "        await attached.aclose()",
        ]

    @property
    def _box(self) -> str:
        return "self" if self._is_box else "self._box"

    def _arguments(self, accepted: tuple[int, ...]) -> str:
        words = [f'"{self._route.name}"']
        placed = {
            location: [one for one in self._parameters if one.location == location]
            for location in ("path", "query", "whole", "body", "header")
        }
        if placed["path"]:
            words.append(_mapping(placed["path"]))
        if placed["query"]:
            words.append(f"query={_mapping(placed['query'])}")
        if placed["body"] or placed["whole"]:
            words.append(f"body={self._body(placed['whole'], placed['body'])}")
        words += [f"headers=idempotency_header({one.name})" for one in placed["header"]]
        words += ['headers={"Accept": "*/*"}'] if self._row.media == "any" else []
        words += [f"accepted={accepted!r}"] if accepted else []
        words += [f"wait_s={wait}"] if (wait := self._wait()) else []
        return ", ".join(words)

    def _body(self, whole: list[Parameter], body: list[Parameter]) -> str:
        optional = [one for one in body if one.default is None or isinstance(one.default, Mapping)]
        parts = [f"**wire_form({one.name})" for one in whole]
        parts += [f'"{one.wire}": {one.name}' for one in body if one not in optional]
        rest = f"without_none({_mapping(optional)})" if optional else ""
        if optional:
            parts.append(f"**{rest}")
        return rest if len(parts) == 1 and optional else f"{{{', '.join(parts)}}}"

    def _wait(self) -> str:
        row = self._row
        if not (name := row.deadline_from):
            return f"{row.deadline_s:g}" if row.deadline_s > _DEFAULT_WAIT else ""
        optional = self._signature.parameters[name].default is None
        value = f"({_MAX_GRACE:g} if {name} is None else {name})" if optional else name
        return f"{value} + {_EXTRA_WAIT:g}"

    def _result(self) -> tuple[str, str]:
        """The annotation of the result, and the statements that return it."""
        annotation, name = self._signature.return_annotation, self._route.response
        args = get_args(annotation)
        if annotation is bytes:
            return "bytes", "return response.content"
        if not name:
            return ("bool", "return response.is_success") if annotation is bool else ("None", "")
        if name == "object":
            text = "document: Mapping[str, Any] = response.json()\nreturn document"
            return "Mapping[str, Any]", text
        kind = annotation if get_origin(annotation) is Page else RECORDS_BY_NAME[name]
        record = self._decode(kind)
        if get_origin(annotation) is tuple and args[1:] == (bool,):
            return (
                f"tuple[{record}, bool]",
                f"return decode({record}, response), response.status_code == 201",
            )
        if types.NoneType in args:
            return f"{record} | None", f"return decode_optional({record}, response)"
        if get_origin(annotation) is tuple:
            return self._unpacked(annotation, kind, record)
        return record, f"return decode({record}, response)"

    def _unpacked(self, annotation: Any, kind: type, record: str) -> tuple[str, str]:
        """The members of the response, if they are what the method returns."""
        hints, args = get_type_hints(kind), get_args(annotation)
        names, members = list(hints), tuple(hints.values())
        if members == (annotation,):
            return self._type(
                annotation, is_result=True
            ), f"return decode({record}, response).{names[0]}"
        if members == args:
            values = ", ".join(f"result.{name}" for name in names)
            text = f"result = decode({record}, response)\nreturn {values}"
            return self._type(annotation, is_result=True), text
        return record, f"return decode({record}, response)"

    def _decode(self, kind: Any) -> str:
        if get_origin(kind) is Page:
            return f"{self._decode(Page)}[{self._decode(get_args(kind)[0])}]"
        self.imports.add(kind)
        return self._decoded.add(kind)

    def _type(self, hint: Any, *, is_result: bool = False) -> str:
        origin, args = get_origin(hint), get_args(hint)
        if hint in (JsonValue, Scalar, Any):
            return "Any"
        if origin is Annotated:
            return self._type(args[0], is_result=is_result)
        if origin in (Union, types.UnionType):
            texts = [
                self._type(one, is_result=is_result) for one in args if one is not types.NoneType
            ]
            return " | ".join([*texts, *(["None"] if types.NoneType in args else [])])
        if origin is Literal:
            return "str"
        if origin is tuple and is_result:
            items = ["..." if one is ... else self._type(one, is_result=True) for one in args]
            return f"tuple[{', '.join(items)}]"
        if origin in (tuple, Sequence):
            return f"Sequence[{self._type(args[0])}]"
        if hint is JsonObj or (isinstance(origin, type) and issubclass(origin, Mapping)):
            return "Mapping[str, Any]"
        if hint in _PLAIN:
            return _PLAIN[hint]
        name = self.imports.add(hint)
        return f"{name} | Mapping[str, Any]" if is_dataclass(hint) and not is_result else name


def _mapping(parameters: Iterable[Parameter]) -> str:
    return f"{{{', '.join(f'{one.wire!r}: {one.name}' for one in parameters)}}}"
