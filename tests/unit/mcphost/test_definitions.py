"""Definitions of tools: their canonical form, and which cannot be offered."""

from typing import Any

import pytest

from agentbox.core.jcs import jcs
from agentbox.mcphost.definitions import (
    MAX_SCHEMA_NODES,
    definition_digest,
    definition_of,
    find_problem,
)

OBJECT: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (333333333.33333329, "333333333.3333333"),
        (1e30, "1e+30"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (0.000000000000000000000000001, "1e-27"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (0.000001, "0.000001"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (1.0, "1"),
        (-1.5e-7, "-1.5e-7"),
        (True, "true"),
        (None, "null"),
    ],
)
def test_numbers_are_those_of_the_rfc(value: Any, text: str) -> None:
    """RFC 8785, section 3.2.2.3 and appendix B."""
    assert jcs(value).decode() == text


def test_names_are_sorted_as_the_rfc_says() -> None:
    """By UTF-16 code units (RFC 8785, section 3.2.3): not by code points."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    expected = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    text = jcs(dict.fromkeys(names, 1)).decode()
    assert [text.index(name if name != "\r" else "\\r") for name in expected] == sorted(
        text.index(name if name != "\r" else "\\r") for name in expected
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53 + 1, "\ud800"])
def test_what_has_no_form_is_refused(value: Any) -> None:
    """RFC 8785 is for JSON that every reader understands alike."""
    with pytest.raises(ValueError, match=r"."):
        jcs({"x": value})


def test_a_digest_is_of_what_is_shown() -> None:
    """Not of the order of members, nor of members that no agent is shown."""
    tool = {"name": "a", "description": "d", "inputSchema": OBJECT}
    same = {"inputSchema": OBJECT, "_meta": {"x": 1}, "description": "d", "name": "a"}
    assert definition_digest(definition_of(tool)) == definition_digest(definition_of(same))
    hidden = {**tool, "description": "d\u200b"}
    assert definition_digest(definition_of(hidden)) != definition_digest(definition_of(tool))


def deep(depth: int) -> dict[str, Any]:
    """A schema whose references double at each level."""
    return {
        "$defs": {
            f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
            for n in range(depth)
        }
        | {f"d{depth}": {"type": "string"}},
        "$ref": "#/$defs/d0",
    }


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$ref": "http://evil.example/x"}, "another document"),
        ({"properties": {"x": {"$ref": "file:///etc/passwd"}}}, "another document"),
        ({"properties": {"x": {"$ref": "#"}}}, "refers to itself"),
        (deep(20), "more than"),
        ({"properties": {"x": {"pattern": "(a+)+$"}}}, "uses pattern"),
        ({"items": {"uniqueItems": True}}, "uses uniqueItems"),
        ({"allOf": [{} for _ in range(MAX_SCHEMA_NODES)]}, "more than"),
    ],
    ids=["remote", "file", "recursive", "doubling", "regex", "unique", "many"],
)
def test_an_unbounded_output_schema_withholds_the_tool(
    schema: dict[str, Any], problem: str
) -> None:
    """Checking a result by it could fetch, or take without end."""
    tool = {"name": "a", "inputSchema": OBJECT, "outputSchema": schema}
    assert problem in find_problem("files", tool, 2048)


def test_a_schema_with_references_of_its_own_is_offered() -> None:
    """They are resolved inside of it."""
    schema = {"$defs": {"n": {"type": "number"}}, "properties": {"x": {"$ref": "#/$defs/n"}}}
    assert not find_problem("files", {"name": "a", "inputSchema": OBJECT, "outputSchema": schema}, 2048)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"name": "a.b"}, {"name": "x" * 58}, {"name": ""}, {"inputSchema": {"type": "string"}}, {"inputSchema": {**OBJECT, "x": "y" * 70_000}}],
    ids=["dot", "long", "empty", "no object", "huge"],
)  # fmt: skip
def test_other_reasons_to_withhold_a_tool(change: dict[str, Any]) -> None:
    """Its name, its size, its input."""
    tool = {"name": "a", "inputSchema": OBJECT}
    assert not find_problem("files", tool, 2048)
    assert find_problem("files", {**tool, **change}, 2048)


@pytest.mark.limit("mcp_description")
def test_a_description_has_its_most() -> None:
    """In bytes; one more withholds that tool alone."""
    tool = {"name": "a", "inputSchema": OBJECT, "description": "ä" * 1024}
    assert not find_problem("files", tool, 2048)
    assert "mcp.description" in find_problem("files", {**tool, "description": "ä" * 1024 + "."}, 2048)  # fmt: skip
