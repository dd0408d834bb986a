"""Tools of MCP servers: what of them an agent is shown, and calls through mcp-host."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agentbox.core.background.tasks import log_failures
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, NotFound, ValidationError
from agentbox.gateway.agent_api import errors
from agentbox.gateway.agent_api.errors import AgentApiError
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.mcp import tool_right
from agentbox.policy.rights.rights import find_allowing_right

if TYPE_CHECKING:
    from agentbox.client.mcp_host import McpHostClient

INPUT_REQUIRED: Final = "input_required"
"""The `resultType` of questions in place of a result."""

SEPARATOR: Final = "__"
"""Between server and tool in a name that `/mcp` offers. A server's name has no underscore."""


@dataclass(frozen=True)
class Turn:
    """How a call is made: whether its client takes questions, and the answers to those of the turn
    before, with its state; "" for the first."""

    can_ask: bool = False
    state: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)


FIRST: Final = Turn()


class ServerTools:
    """Connects to mcp-host at the first use, which only an agent with servers causes."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._client: McpHostClient | None = None
        self._served: set[str] = set()  # ids of agents that used a server
        self._ends: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Idempotent."""
        for task in self._ends:
            task.cancel()
        if self._client is not None:
            await self._client.close()

    async def describe(self, caller: Authorization, server: str = "") -> list[dict[str, Any]]:
        """Definitions for `tools/list`, of one server or of all that the agent is offered: those of
        tools that some right may allow. Names have the server in front unless it is given."""
        servers = [name for name in caller.mcp if server in ("", name)]
        if not servers:
            return []
        try:
            offered = await self._host.list_tools(tuple(servers), agent_id=caller.agent_id)
        except AdapterError as error:
            raise _to_agent_api_error(error) from error
        return [
            {**row.definition, "name": _shown_name(row.server, row.definition["name"], server)}
            for row in offered
            if _may_be_allowed(caller, row.server, row.definition["name"])
        ]

    async def call(
        self,
        caller: Authorization,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        turn: Turn = FIRST,
    ) -> dict[str, Any]:
        """The server's result, or its questions, with the `resultType` INPUT_REQUIRED. Raises
        AgentApiError. The caller was authorized."""
        call = {"arguments": dict(arguments), "agent_id": caller.agent_id}
        try:
            if turn.state:
                made = self._host.answer_call(
                    turn.state, server=server, tool=tool, answers=dict(turn.answers), **call
                )
            else:
                made = self._host.call_tool(
                    server,
                    tool,
                    session_id=caller.session_id,
                    trace_id=caller.trace_id,
                    can_ask=turn.can_ask,
                    **call,
                )
            return dict(await made)
        except ValidationError as error:
            raise errors.invalid_params(error.message) from error
        except AdapterError as error:
            raise _to_agent_api_error(error) from error

    def abandon(
        self,
        caller: Authorization,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        state: str,
    ) -> None:
        """Ends, in the background, a call whose questions will not be answered."""

        async def end() -> None:
            with contextlib.suppress(AdapterError):  # it ends by itself when its time is up
                await self._host.abandon_call(
                    state,
                    server=server,
                    tool=tool,
                    arguments=dict(arguments),
                    agent_id=caller.agent_id,
                )

        self._run_in_background(end(), "end of a call of an MCP server")

    def watch_end(
        self, caller: Authorization, revocation: Callable[[], "asyncio.Future[None]"]
    ) -> None:
        """Ends what serves only this agent once it has ended: `revocation` then returns a future
        that is done, and otherwise one that will be. Each agent is watched once."""
        if caller.agent_id in self._served:
            return
        self._served.add(caller.agent_id)

        async def wait() -> None:
            while not (change := revocation()).done():
                await asyncio.wait({change})
            self._served.discard(caller.agent_id)
            with contextlib.suppress(AdapterError):  # it ends them itself when they are idle
                await self._host.end_agent(caller.agent_id)

        self._run_in_background(wait(), "end of an agent with MCP servers")

    def _run_in_background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        task.add_done_callback(log_failures(task.get_name()))

    @property
    def _host(self) -> Any:
        if self._client is None:
            from agentbox.client.mcp_host import McpHostClient  # most boxes have no servers

            self._client = McpHostClient(self._paths)
        return self._client.operations


def split_name(name: str) -> tuple[str, str]:
    """Server and tool of a name that `/mcp` offers; ("", "") for one of the box's own tools."""
    server, separator, tool = name.partition(SEPARATOR)
    return (server, tool) if separator else ("", "")


def _shown_name(server: str, tool: str, only: str) -> str:
    return tool if only else f"{server}{SEPARATOR}{tool}"


def _may_be_allowed(caller: Authorization, server: str, tool: str) -> bool:
    name = tool_right(server, tool)
    return all(
        find_allowing_right(rights, "tool", "call", name)
        for rights in (caller.rights, *(ancestor.rights for ancestor in caller.ancestors))
    )


def _to_agent_api_error(error: AdapterError) -> AgentApiError:
    if isinstance(error, NotFound):
        return AgentApiError(errors.INVALID_PARAMS, error.message, error.code)
    return AgentApiError(errors.FAILED, error.message, error.code, **error.members)
