"""Forms that a server asks an agent to fill in: what the protocol allows of them, bounded, with
texts that show every character; and answers to them.

Source: modelcontextprotocol.io/specification/2026-07-28/client/elicitation.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentbox.core.visible_text import escape_invisible

MAX_MESSAGE: Final = 2000  # characters
MAX_FORM_BYTES: Final = 16 << 10
MAX_FIELDS: Final = 32
MAX_ANSWER_BYTES: Final = 64 << 10
ACTIONS: Final = ("accept", "decline", "cancel")
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_FORMATS: Final = ("email", "uri", "date", "date-time")
_TEXTS: Final = ("title", "description")  # shown, and nothing else
_BOUNDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}
"""The types of fields, with the members of each that are numbers."""


class InvalidForm(ValueError):
    """The form, or the answer, is not one of the protocol."""


def make_form(server: str, message: Any, schema: Any) -> dict[str, Any]:
    """`message`, which names the server, and `requestedSchema`, with the members that the protocol
    has. Raises InvalidForm."""
    if not isinstance(message, str) or len(message) > MAX_MESSAGE:
        raise InvalidForm(f"the message is no text of at most {MAX_MESSAGE} characters")
    if not isinstance(schema, Mapping) or len(_json(schema)) > MAX_FORM_BYTES:
        raise InvalidForm(f"the schema is no object of at most {MAX_FORM_BYTES} bytes")
    fields, required = schema.get("properties"), schema.get("required") or []
    if schema.get("type") != "object" or not isinstance(fields, Mapping):
        raise InvalidForm("the schema is not that of an object")
    if len(fields) > MAX_FIELDS:
        raise InvalidForm(f"the form has more than {MAX_FIELDS} fields")
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in fields):
        raise InvalidForm("the name of a field is not one")
    if not isinstance(required, list) or not all(name in fields for name in _texts(required)):
        raise InvalidForm("a field that is required is not in the form")
    return {
        "message": f"The MCP server {server} asks: {escape_invisible(message, lines=True)}",
        "requestedSchema": {
            "type": "object",
            "properties": {name: _field(field) for name, field in fields.items()},
            "required": required,
        },
    }


def check_answer(form: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """The members that the protocol has of an answer. Raises InvalidForm for one that the form does
    not allow."""
    if not isinstance(answer, Mapping) or answer.get("action") not in ACTIONS:
        raise InvalidForm(f"the action of an answer is one of {', '.join(ACTIONS)}")
    if answer["action"] != "accept":
        return {"action": answer["action"]}
    content = answer.get("content")
    if not isinstance(content, Mapping) or len(_json(content)) > MAX_ANSWER_BYTES:
        raise InvalidForm(f"the content is no object of at most {MAX_ANSWER_BYTES} bytes")
    from jsonschema import Draft202012Validator  # few servers ask

    schema = {**form["requestedSchema"], "additionalProperties": False}
    error = next(Draft202012Validator(schema).iter_errors(dict(content)), None)
    if error is not None:
        raise InvalidForm(f"the content does not match at /{'/'.join(map(str, error.path))}")
    return {"action": "accept", "content": dict(content)}


def _field(field: Any) -> dict[str, Any]:
    kind = field.get("type") if isinstance(field, Mapping) else None
    if not isinstance(kind, str) or kind not in _BOUNDS:
        raise InvalidForm("a field is neither a text, number or boolean, nor a choice of texts")
    made: dict[str, Any] = {"type": kind, **_display(field)}
    for name in _BOUNDS[kind]:
        if (value := field.get(name)) is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidForm(f"{name} of a field is not a number")
            made[name] = value
    if kind == "array":
        made["items"] = _items(field.get("items"))
    elif kind == "string":
        made |= _choices(field, "oneOf")
        if field.get("format") in _FORMATS:
            made["format"] = field["format"]
    if (default := field.get("default")) is not None:
        made["default"] = _default(default)
    return made


def _items(items: Any) -> dict[str, Any]:
    made = _choices(items, "anyOf") if isinstance(items, Mapping) else {}
    if not made:
        raise InvalidForm("the items of a field are no choices")
    return {"type": "string", **made}


def _choices(field: Mapping[str, Any], titled: str) -> dict[str, Any]:
    """The choices of a text: plain, with names beside them, or each with its title."""
    made: dict[str, Any] = {}
    if (plain := field.get("enum")) is not None:
        made["enum"] = [_value(value) for value in _texts(plain)]
        if (names := field.get("enumNames")) is not None:
            made["enumNames"] = [escape_invisible(name) for name in _texts(names)]
    if (rows := field.get(titled)) is not None:
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise InvalidForm("the choices of a field are no list")
        made[titled] = [{"const": _value(row.get("const")), **_display(row)} for row in rows]
    return made


def _display(field: Mapping[str, Any]) -> dict[str, str]:
    found = {name: field[name] for name in _TEXTS if field.get(name) is not None}
    return {name: escape_invisible(text) for name, text in found.items() if _texts([text])}


def _default(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value if isinstance(value, bool | int | float) else _value(value)


def _value(value: Any) -> str:
    """A text that the answer may have. Raises InvalidForm for one that is not what it looks
    like."""
    if not isinstance(value, str) or escape_invisible(value) != value:
        raise InvalidForm("a choice is no text, or has an invisible character")
    return value


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidForm("a part of the form is no text")
    return values


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidForm("it is not JSON") from error
