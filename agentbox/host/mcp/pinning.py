"""Definitions of tools as a person reads them before pinning: every hidden character visible, and
what has changed since the last pin.
"""

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentbox.contracts.mcp import McpServer, McpTool
from agentbox.core.visible_text import escape_invisible, is_visible

_TEXTS: Final = ("title", "description")
_PINNABLE: Final = ("offered", "unpinned", "drift")


def pinnable(server: McpServer) -> dict[str, McpTool]:
    """The tools that can be pinned, by name: those that the server has now, as far as the row
    selects them."""
    return {tool.name: tool for tool in server.tools if tool.state in _PINNABLE and tool.digest}


def describe(server: McpServer) -> Iterator[str]:
    """Blocks of lines, one a tool."""
    for tool in server.tools:
        yield _describe(tool)


def _describe(tool: McpTool) -> str:
    lines = [f"== {escape_invisible(tool.name)}: {_change(tool)}"]
    if tool.pinned_definition and tool.digest:
        old, new = _text(tool.pinned_definition), _text(tool.definition)
        lines += difflib.unified_diff(old, new, "pinned", "now", lineterm="")
    else:
        lines += _text(tool.definition)
    if hidden := _count_hidden(tool.definition):
        lines.append(f"!! hidden characters: {hidden}, shown as escapes")
    return "\n".join(lines)


def _change(tool: McpTool) -> str:
    if not tool.digest:
        return "gone: the server no longer has it"
    if tool.state not in _PINNABLE:
        return f"not offered: {escape_invisible(tool.detail)}"
    if not tool.pinned:
        return "new"
    return "unchanged" if tool.pinned == tool.digest else "CHANGED"


def _text(definition: Mapping[str, Any]) -> list[str]:
    """Its members as visible lines."""
    lines: list[str] = []
    for name, value in definition.items():
        if name == "name":
            continue
        text = value if name in _TEXTS else json.dumps(value, indent=2, ensure_ascii=False)
        lines.append(f"{escape_invisible(name)}:")
        lines += [f"    {escape_invisible(line, tabs=True)}" for line in str(text).split("\n")]
    return lines


def _count_hidden(value: Any) -> int:
    if isinstance(value, str):
        return sum(not is_visible(one) and one not in "\n\t" for one in value)
    if isinstance(value, Mapping):
        return sum(_count_hidden(part) for pair in value.items() for part in pair)
    return sum(map(_count_hidden, value)) if isinstance(value, list | tuple) else 0
