"""The pipes of a program in a sandbox as the transport of an MCP client (stdio: one message a
line).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.slot_errors import AdapterError

STDERR_BYTES = 4096  # the last ones are kept
_UNASKED = 4  # as many times the longest message may come without a message to the server
_UNASKED_MESSAGES = 2000  # and so many messages
_STDIN_PART = 256 << 10  # bytes of one call of agent-host

Received = SessionMessage | Exception


class ExecTransport:
    """`n` is the program's number in its sandbox; a line of more than `max_line` bytes, or much
    that nobody asked for, ends the connection. `ended` is set when nothing more will be received;
    `reason` says why then. `stderr` has the end of what the program wrote there. `first` is sent
    before the first message."""

    def __init__(
        self,
        host: AgentHost,
        sandbox_id: str,
        n: int,
        max_line: int,
        ended: asyncio.Event,
        *,
        first: bytes = b"",
    ) -> None:
        self._host, self._sandbox_id, self._n, self._max_line = host, sandbox_id, n, max_line
        self.reason, self.stderr = "", b""
        self._ended, self._unasked, self._messages, self._first = ended, 0, 0, first

    @contextlib.asynccontextmanager
    async def open(
        self,
    ) -> AsyncIterator[
        tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]
    ]:
        """Both ends, for a client session. They are closed when the program has ended."""
        to_session, received = anyio.create_memory_object_stream[Received](0)
        sent, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(to_session)),
            asyncio.create_task(self._write(from_session, to_session)),
        ]
        try:
            yield received, sent
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, received, sent, from_session):
                stream.close()

    async def _read(self, to_session: MemoryObjectSendStream[Received]) -> None:
        line = bytearray()
        items = self._host.stream_exec(self._sandbox_id, self._n, since=0, follow=True)
        try:
            async for item in items:
                if item.kind == "stderr":
                    self.stderr = (self.stderr + item.data)[-STDERR_BYTES:]
                elif item.kind == "exit":
                    self.reason = "its program ended"
                elif item.kind == "stdout":
                    self._unasked += len(item.data)
                    self._messages += item.data.count(b"\n")
                    if (
                        self._unasked > _UNASKED * self._max_line
                        or self._messages > _UNASKED_MESSAGES
                    ):
                        self.reason = "it sends without being asked"
                        return
                    *complete, rest = item.data.split(b"\n")
                    for part in complete:
                        line += part
                        if len(line) > self._max_line:
                            break
                        await to_session.send(_parse(bytes(line)))
                        line.clear()
                    line += rest if len(line) <= self._max_line else b""
                    if len(line) > self._max_line:
                        self.reason = f"it sent a message of more than {self._max_line} bytes"
                        return
        except AdapterError as error:
            self.reason = error.message
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the session has ended
        finally:
            self.reason = self.reason or "its output ended"
            self._ended.set()
            to_session.close()

    async def _write(
        self,
        from_session: MemoryObjectReceiveStream[SessionMessage],
        to_session: MemoryObjectSendStream[Received],
    ) -> None:
        try:
            async for sent in from_session:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                data, self._first = self._first + text.encode() + b"\n", b""
                self._unasked = self._messages = 0
                for start in range(0, len(data), _STDIN_PART):
                    await self._host.write_exec_stdin(
                        self._sandbox_id,
                        self._n,
                        data=data[start : start + _STDIN_PART],
                        eof=False,
                    )
        except AdapterError as error:
            self.reason = self.reason or error.message
            self._ended.set()
            to_session.close()


def _parse(line: bytes) -> Received:
    """A line that is no message becomes an exception, which the session ignores."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error
