"""Forms of servers, and answers to them."""

from typing import Any

import pytest

from agentbox.mcphost.forms import (
    MAX_ANSWER_BYTES,
    MAX_FIELDS,
    MAX_MESSAGE,
    InvalidForm,
    check_answer,
    make_form,
)

KINDS = {
    "text": {"type": "string", "minLength": 1, "maxLength": 9, "format": "email", "default": "a@b"},
    "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
    "ratio": {"type": "number", "title": "Ratio", "description": "Of both."},
    "sure": {"type": "boolean", "default": True},
    "one": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
    "some": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 2},
    "titles": {"type": "array", "items": {"type": "string", "anyOf": [{"const": "a", "title": "A"}]}, "default": ["a"]},
}  # fmt: skip


def form(fields: Any, **more: Any) -> dict[str, Any]:
    """A form with these fields."""
    return make_form("calc", "Which?", {"type": "object", "properties": fields, **more})


def test_what_the_protocol_has_is_kept() -> None:
    """Every kind of field, as it is."""
    made = form(KINDS, required=["text"])
    assert made["message"] == "The MCP server calc asks: Which?"
    assert made["requestedSchema"] == {"type": "object", "properties": KINDS, "required": ["text"]}


def test_anything_else_is_left_out() -> None:
    """A pattern could keep the check busy, a reference lead elsewhere."""
    field = {"type": "string", "pattern": "(a+)+$", "$ref": "http://evil.example", "format": "regex"}  # fmt: skip
    made = form({"a": field}, additionalProperties=True, **{"$defs": {}})
    assert made["requestedSchema"]["properties"] == {"a": {"type": "string"}}
    assert set(made["requestedSchema"]) == {"type", "properties", "required"}


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({"a": {"type": "object", "properties": {}}}, {}),
        ({"a": {"type": ["string", "null"]}}, {}),
        ({"a": {"type": "array", "items": {"type": "string"}}}, {}),
        ({"a": {"type": "array", "items": {"type": "array"}}}, {}),
        ({"a": {"type": "string", "enum": ["x\u200b"]}}, {}),
        ({"a": {"type": "string", "enum": "ab"}}, {}),
        ({"a": {"type": "string", "title": 7}}, {}),
        ({"a": {"type": "string", "default": {}}}, {}),
        ({"a": {"type": "number", "minimum": "1"}}, {}),
        ({"a": {"type": "number", "minimum": float("nan")}}, {}),
        ({"a\u202e": {"type": "string"}}, {}),
        ({"a": "string"}, {}),
        ([], {}),
        ({}, {"required": ["a"]}),
        ({}, {"required": [[]]}),
        ({}, {"type": "array"}),
        ({f"a{n}": {"type": "string"} for n in range(MAX_FIELDS + 1)}, {}),
        ({"a": {"type": "string", "description": "x" * 20_000}}, {}),
    ],
)
def test_what_is_no_form_is_refused(fields: Any, more: dict[str, Any]) -> None:
    """Nested, with invisible characters where they count, or too large."""
    with pytest.raises(InvalidForm):
        form(fields, **more)


@pytest.mark.parametrize("message", [None, 7, "x" * (MAX_MESSAGE + 1)])
def test_a_message_is_a_text(message: Any) -> None:
    """Of a length that a person reads."""
    with pytest.raises(InvalidForm):
        make_form("calc", message, {"type": "object", "properties": {}})


def test_an_answer_matches_its_form() -> None:
    """What it has beside that is left out."""
    made = form({"a": {"type": "integer", "maximum": 3}}, required=["a"])
    accepted = {"action": "accept", "content": {"a": 3}}
    assert check_answer(made, {**accepted, "_meta": {}}) == accepted
    assert check_answer(made, {"action": "decline", "content": {"a": 3}}) == {"action": "decline"}
    for wrong in (
        None, [], {}, {"action": "perhaps"}, {"action": "accept"}, {"action": "accept", "content": {}},
        {"action": "accept", "content": {"a": 4}}, {"action": "accept", "content": {"a": 3, "b": 1}},
    ):  # fmt: skip
        with pytest.raises(InvalidForm):
            check_answer(made, wrong)


def test_an_answer_has_its_most() -> None:
    """In bytes."""
    made = form({"a": {"type": "string"}})
    for text in ("x" * MAX_ANSWER_BYTES, "\ud800"):  # the latter has no bytes
        with pytest.raises(InvalidForm):
            check_answer(made, {"action": "accept", "content": {"a": text}})
