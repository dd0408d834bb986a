"""Results of calls: their size, and the output schema."""

from typing import Any

import pytest

from agentbox.core.slot_errors import McpResult
from agentbox.mcphost.results import check_result

SCHEMA = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **more}


@pytest.mark.limit("mcp_max_result")
def test_a_result_has_its_most() -> None:
    """In bytes as JSON; one more is an error of that call."""
    result = text("x" * 100)
    size = len(check_result("calc", {"name": "add"}, result, 1 << 20))
    check_result("calc", {"name": "add"}, result, size)
    with pytest.raises(McpResult, match=r"mcp\.servers\.calc\.max_result"):
        check_result("calc", {"name": "add"}, result, size - 1)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (text("3", structuredContent={"sum": 3}), ""),
        (text("3"), "no structured content"),
        (text("3", structuredContent={"sum": "many"}), "/sum"),
        (text("3", structuredContent={}), "does not match"),
        (text("no", isError=True), ""),
    ],
)
def test_structured_content_matches_the_pinned_schema(result: dict[str, Any], reason: str) -> None:
    """An error of the tool need not."""
    tool = {"name": "add", "outputSchema": SCHEMA}
    if reason:
        with pytest.raises(McpResult, match=reason):
            check_result("calc", tool, result, 1 << 20)
    else:
        check_result("calc", tool, result, 1 << 20)


def test_media_and_links_pass_as_data() -> None:
    """Nothing is fetched for them."""
    link = {"type": "resource_link", "name": "x", "uri": "http://evil.example/"}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert b"evil.example" in check_result("calc", {"name": "add"}, {"content": [link, image]}, 1 << 20)  # fmt: skip


def test_a_bad_schema_is_an_error() -> None:
    """Of that call."""
    tool = {"name": "add", "outputSchema": {"type": "nothing"}}
    with pytest.raises(McpResult, match="not valid"):
        check_result("calc", tool, text("3", structuredContent={}), 1 << 20)
