"""The program of one agent: its lines, its standard input, its end. It goes on without
session-host, which reads on at the place that it stored, and writes what was not taken.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

import structlog

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.orchestrator import MAX_RUN_SECONDS, Signal, StreamItem
from agentbox.core.slot_errors import (
    AdapterError,
    AdapterTimeout,
    InvalidTransition,
    SlotUnavailable,
)
from agentbox.sessions.batches import batches
from agentbox.sessions.lines import LineReader, LineTooLong, Place
from agentbox.sessions.store import Changes, SessionStore
from agentbox.sessions.stored import StoredSession

STDERR_KEPT: Final = 4 << 10  # bytes of its last output there, for errors
_MAX_OUTPUT: Final = 8 << 20  # bytes of output that agent-host keeps
_RETRY_SECONDS: Final = 0.2
_log = structlog.get_logger()

OnLines = Callable[[list[bytes], Place], Awaitable[None]]
OnEnd = Callable[[str], Awaitable[None]]


class AgentProgram:
    """`on_lines` gets complete lines and stores their place; `on_end` gets the reason of the end,
    once. `on_invalid` gets the beginning of a line that is too long."""

    def __init__(
        self,
        host: AgentHost,
        store: SessionStore,
        session: StoredSession,
        max_line: int,
        on_lines: OnLines,
        on_end: OnEnd,
        on_invalid: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._host, self._store, self._session = host, store, session
        self._max_line = max_line
        self._on_lines, self._on_end, self._on_invalid = on_lines, on_end, on_invalid
        self._tasks: list[asyncio.Task[None]] = []
        self._unsent = asyncio.Event()
        self.stderr = b""

    async def start(self, argv: tuple[str, ...], cwd: str) -> None:
        """Starts it in the session's sandbox; a repeated call finds the same one. `cwd`: "" or a
        path below the workspace. Raises what starting a program in a sandbox raises."""
        session = self._session
        started = await self._host.exec_sandbox(
            session.sandbox_id,
            argv,
            request_id=f"{session.session_id}/{session.generation}",
            cwd=cwd,
            env=None,
            stdin=None,
            interactive=True,
            timeout_s=MAX_RUN_SECONDS,
            max_output=_MAX_OUTPUT,
            detach=True,
        )
        session.program, session.place, session.written = started.n, (0, 0), 0

    def attach(self) -> None:
        """Reads on, and writes what is in the store."""
        self._unsent.set()
        self._tasks = [
            asyncio.create_task(self._read(), name=f"read {self._session.session_id}"),
            asyncio.create_task(self._write(), name=f"write {self._session.session_id}"),
        ]

    def wake(self) -> None:
        """There is something to write."""
        self._unsent.set()

    async def signal(self, signal: Signal) -> None:
        """Nothing if it has ended."""
        try:
            await self._host.signal_exec(self._session.sandbox_id, self._session.program, signal)
        except (InvalidTransition, SlotUnavailable) as error:
            _log.info("program not signalled", reason=error.message)

    async def end(self, grace_s: float) -> None:
        """TERM, and KILL after the grace period; `on_end` follows. Nothing if it has ended."""
        await self._host.end_exec(self._session.sandbox_id, self._session.program, grace_s=grace_s)

    async def detach(self) -> None:
        """Neither reads nor writes any more; the program goes on."""
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self) -> None:
        try:
            await self._read_on()
        except Exception:  # noqa: BLE001 - a bug, which the agent may look for: no session hangs
            _log.exception("agent not read", session_id=self._session.session_id)
            await self._on_invalid(b"(output that session-host cannot handle)")
            await self._on_end("session-host cannot handle what it sent")

    async def _read_on(self) -> None:
        session = self._session
        reader = LineReader(session.read_from, self._max_line)
        while True:
            try:
                output = self._host.stream_exec(
                    session.sandbox_id, session.program, since=reader.place.cursor, follow=True
                )
                async with aclosing(batches(output)) as arrived:
                    async for items in arrived:
                        if await self._take(items, reader):
                            return
                return
            except LineTooLong:
                await self._on_invalid(reader.partial[:200])
                await self._on_end("its line was too long")
                return
            except SlotUnavailable as error:  # agent-host starts again
                _log.info("agent not read", session_id=session.session_id, reason=error.message)
                await asyncio.sleep(_RETRY_SECONDS)
                reader = LineReader(session.read_from, self._max_line)
            except AdapterError as error:
                await self._on_end(error.message)
                return

    async def _take(self, items: list[StreamItem], reader: LineReader) -> bool:
        """Lines that came together are handled together. True at the end of the program. Raises
        LineTooLong."""
        lines: list[bytes] = []
        try:
            for item in items:
                if item.kind == "stdout":
                    lines += reader.feed(item.cursor, item.data)
                elif item.kind == "stderr":
                    self.stderr = (self.stderr + item.data)[-STDERR_KEPT:]
        finally:  # also those before a line that is too long
            if lines:
                await self._on_lines(lines, reader.place)
        if any(item.kind == "state" and b"output-lost" in item.data for item in items):
            await self._on_invalid(b"(output that was lost)")
            await self._on_end("its output was lost")
            return True
        if any(item.kind == "exit" for item in items):
            await self._on_end("its program ended")
            return True
        return False

    async def _write(self) -> None:
        session = self._session
        while True:
            await self._unsent.wait()
            self._unsent.clear()
            while lines := await self._store.outbox(session.session_id):
                data = b"".join(line for _, line in lines)
                if not await self._write_once(data):
                    return
                session.written += len(data)
                changes = Changes()
                changes.add(
                    "DELETE FROM outbox WHERE session_id = ? AND seq <= ?",
                    session.session_id,
                    lines[-1][0],
                )
                changes.save(session)
                await self._store.commit(changes)

    async def _write_once(self, data: bytes) -> bool:
        """False if it no longer reads."""
        session = self._session
        while True:
            try:
                await self._host.write_exec_stdin(
                    session.sandbox_id, session.program, data=data, eof=False, at=session.written
                )
            except (SlotUnavailable, AdapterTimeout):  # tried again: nothing is written twice
                await asyncio.sleep(_RETRY_SECONDS)
            except AdapterError as error:
                _log.info("agent not written", session_id=session.session_id, reason=error.message)
                return False
            else:
                return True
