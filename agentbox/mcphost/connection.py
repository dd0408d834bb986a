"""One live connection to a server: what it offers now, and calls."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from agentbox.core.slot_errors import AdapterError, McpResult, McpTimeout, McpUnavailable
from agentbox.core.visible_text import escape_invisible
from agentbox.mcphost.asking_call import ASK_SECONDS, AskingCall
from agentbox.mcphost.definitions import definition_digest, definition_of
from agentbox.mcphost.server_questions import ServerQuestions

START_SECONDS: Final = 60.0
RELIST_SECONDS: Final = 60.0  # a listing is asked for again before the next call after it
MAX_TOOLS: Final = 1024  # of one server
_NEVER: Final = float("-inf")
_MAX_PAGES: Final = 16  # of a listing
_MAX_TEXT: Final = 300  # characters of a server's own words in an error

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class Transport(Protocol):
    """How a server is reached. `reason` says why the connection ended; `ended` is set then."""

    ended: asyncio.Event

    @property
    def reason(self) -> str: ...

    @property
    def stderr(self) -> bytes: ...

    def open(self) -> contextlib.AbstractAsyncContextManager[Streams]: ...


class LiveTool:
    """A definition as the server has it now, with its digest; "" if it has no canonical form."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self.definition = definition
        try:
            self.digest = definition_digest(definition)
        except (ValueError, RecursionError):
            self.digest = ""


class _Session(ClientSession):
    """Results are checked by `results.check_result`, against the pinned schema."""

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        return

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:
        """Forms alone: an agent is not sent to addresses that a server chooses."""
        built = super()._build_capabilities(version)
        if built.elicitation is not None:
            built.elicitation = types.ElicitationCapability(form=types.FormElicitationCapability())
        return built


class ServerConnection:
    """`ended` is done when the connection cannot be used any more. A client offers servers neither
    roots nor sampling, and elicitation only with `asks`: what else they ask for is refused."""

    def __init__(self, server: str, transport: Transport, *, asks: bool = False) -> None:
        self.server, self._transport = server, transport
        self._questions = ServerQuestions(self._end_flood) if asks else None
        self.tools: Mapping[str, LiveTool] = {}
        self.protocol = ""
        self.calls = 0  # in flight
        self.used_at = time.monotonic()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session: _Session | None = None
        self._listed_at, self._changes = _NEVER, 0  # how often it said that its tools changed
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._relisting = asyncio.Lock()
        self._task = asyncio.create_task(self._run(), name=f"mcp-server-{server}")

    @property
    def is_over(self) -> bool:
        """Whether it cannot be used any more; `ended` follows when nothing of it is left."""
        return self._transport.ended.is_set() or self._stop.is_set() or self.ended.done()

    async def wait_ready(self) -> None:
        """Returns when its tools are known. Raises McpUnavailable."""
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Idempotent."""
        self._stop.set()
        await asyncio.wait({self._task})

    async def refresh(self, *, max_age: float = RELIST_SECONDS) -> None:
        """Asks for its tools again if it has said that they changed, or after `max_age` seconds.
        Raises McpUnavailable."""
        async with self._relisting:
            if time.monotonic() - self._listed_at >= max_age:
                await self._list_tools()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float,
        asking: AskingCall | None = None,
    ) -> dict[str, Any]:
        """The result as the server sent it, without its `_meta`. `asking` takes the questions of a
        server that may ask. Raises McpTimeout, McpUnavailable, and McpResult for an answer that is
        no result."""
        assert self._session is not None
        self.calls += 1
        try:
            if asking is None or self._questions is None:
                result = await self._session.call_tool(
                    tool, dict(arguments), read_timeout_seconds=seconds
                )
            else:
                result = await self._questions.call(self._session, tool, arguments, seconds, asking)
        except TimeoutError as error:  # of a call that may ask
            if asking is not None and asking.is_paused:
                raise McpTimeout(
                    f"cannot finish {tool}: a question of the server was not answered within "
                    f"{ASK_SECONDS:g} s",
                    server=self.server,
                    tool=tool,
                ) from error
            raise self._late(tool, seconds) from error
        except MCPError as error:
            raise self._call_error(tool, seconds, error) from error
        except ValueError as error:  # what pydantic raises
            raise self._bad_result(tool, "it is not one of the protocol") from error
        except RuntimeError as error:  # it asks for input, or claims an extension
            raise self._bad_result(tool, "the server asks for input, which it may not") from error
        finally:
            self.calls -= 1
            self.used_at = time.monotonic()
        found = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {name: value for name, value in found.items() if name not in ("_meta", "resultType")}

    async def _run(self) -> None:
        try:
            async with (
                self._transport.open() as streams,
                _Session(
                    *streams,
                    client_info=_client_info(),
                    message_handler=self._on_message,
                    elicitation_callback=self._questions.on_request if self._questions else None,
                ) as session,
            ):
                self._session = session
                async with asyncio.timeout(START_SECONDS):
                    await negotiate_auto(session)
                    self.protocol = session.protocol_version or ""
                    await self._list_tools()
                self._ready.set_result(None)
                await _first_of(self._stop, self._transport.ended)
        except (MCPError, ValueError, RuntimeError, AdapterError, OSError) as error:
            self._fail(error)
        except BaseExceptionGroup as group:
            self._fail(group.exceptions[0])
        finally:
            self._fail(TimeoutError())
            self.ended.set_result(None)

    def _fail(self, error: BaseException) -> None:
        """Who waits for the start gets the error, if it has not succeeded."""
        if not self._ready.done():
            self._ready.set_exception(self._failure(error))
            self._ready.exception()  # nobody need wait

    async def _list_tools(self) -> None:
        assert self._session is not None
        tools: dict[str, LiveTool] = {}
        cursor: str | None = None
        pages, started, changes = 0, time.monotonic(), self._changes
        try:
            async with asyncio.timeout(START_SECONDS):
                while True:
                    params = types.PaginatedRequestParams(cursor=cursor)
                    page = await self._session.list_tools(params=params if cursor else None)
                    for tool in page.tools:
                        row = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                        tools.setdefault(tool.name, LiveTool(definition_of(row)))
                    cursor, pages = page.next_cursor, pages + 1
                    if not cursor:
                        break
                    if len(tools) >= MAX_TOOLS or pages >= _MAX_PAGES:
                        raise self._unavailable(
                            f"it lists more than {MAX_TOOLS} tools, or {_MAX_PAGES} pages of them"
                        )
        except (MCPError, ValueError, TimeoutError) as error:
            raise self._failure(error) from error
        self.tools = tools
        if changes == self._changes:  # else the next call asks again
            self._listed_at = started

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._listed_at, self._changes = _NEVER, self._changes + 1

    def _call_error(self, tool: str, seconds: float, error: MCPError) -> Exception:
        if error.code == types.REQUEST_TIMEOUT:
            return self._late(tool, seconds)
        if error.code == types.CONNECTION_CLOSED:
            return self._unavailable(self._transport.reason or "the connection was closed")
        return self._bad_result(tool, f"the server answered with an error: {_said(error.message)}")

    def _late(self, tool: str, seconds: float) -> McpTimeout:
        return McpTimeout(
            f"cannot finish {tool}: the server did not answer within {seconds:g} s",
            hint=f"raise mcp.servers.{self.server}.call_seconds in agentbox.toml",
            server=self.server,
            tool=tool,
        )

    def _end_flood(self) -> None:
        """Of a server that goes on asking although it is refused."""
        self._stop.set()

    def _bad_result(self, tool: str, reason: str) -> McpResult:
        return McpResult(
            f"cannot return the result of {tool}: {reason}", server=self.server, tool=tool
        )

    def _failure(self, error: BaseException) -> McpUnavailable:
        if isinstance(error, McpUnavailable):
            return error
        if isinstance(error, TimeoutError):
            return self._unavailable(f"it did not answer within {START_SECONDS:g} s")
        if isinstance(error, MCPError) and error.code != types.CONNECTION_CLOSED:
            return self._unavailable(f"it answered with an error: {_said(error.message)}")
        if isinstance(error, ValueError):
            return self._unavailable("it does not follow the protocol")
        return self._unavailable(self._transport.reason or f"{type(error).__name__}")

    def _unavailable(self, reason: str) -> McpUnavailable:
        written = self._transport.stderr.decode(errors="replace").strip()
        more = f"; it wrote: {_said(written[-_MAX_TEXT:])}" if written else ""
        return McpUnavailable(
            f"cannot use the MCP server {self.server}: {reason}{more}",
            hint=f"agentbox mcp show {self.server}",
            server=self.server,
        )


async def _first_of(*events: asyncio.Event) -> None:
    """Until one of them is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _client_info() -> types.Implementation:
    from agentbox import __version__

    return types.Implementation(name="agentbox", version=__version__)


def _said(text: str) -> str:
    """A server's own words, for people and models: short and without invisible characters."""
    return escape_invisible(text[:_MAX_TEXT])
