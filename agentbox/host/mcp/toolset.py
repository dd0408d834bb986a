"""Registers functions as tools: errors of the box become errors that the model reads."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ToolAnnotations

from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.core.visible_text import escape_invisible

Parameters = ParamSpec("Parameters")
ToolFunction = Callable[Parameters, Awaitable[CallToolResult]]


class Toolset:
    """The tools of one server. The name of a function is that of its tool, its docstring the
    description.
    """

    def __init__(self, server: MCPServer[Any]) -> None:
        self._server = server

    def reading(self, function: ToolFunction[Parameters]) -> None:
        """Add a tool that changes nothing."""
        self._add(function, ToolAnnotations(read_only_hint=True, open_world_hint=False))

    def writing(self, function: ToolFunction[Parameters]) -> None:
        """Add a tool that changes something in the box."""
        self._add(function, ToolAnnotations(read_only_hint=False, open_world_hint=False))

    def _add(self, function: ToolFunction[Parameters], annotations: ToolAnnotations) -> None:
        @functools.wraps(function)
        async def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> CallToolResult:
            try:
                return await function(*args, **kwargs)
            except (ApiError, BoxUnreachable) as error:
                raise ToolError(escape_invisible(str(error))) from error

        self._server.add_tool(call, annotations=annotations, structured_output=False)
