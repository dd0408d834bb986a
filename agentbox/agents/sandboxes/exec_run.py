"""One program of a sandbox from its request to its exit, with its output."""

import asyncio
import base64
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import structlog

from agentbox.agents.errors import invalid
from agentbox.agents.runs.capture import OutputCapture, first_bytes
from agentbox.agents.runs.pump import Pump
from agentbox.agents.runs.stdin import Stdin, StdinClosed
from agentbox.agents.sandboxes.exec_ends import exit_of, not_started, over
from agentbox.agents.streams.attached_readers import AttachedReaders
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import StreamKind
from agentbox.contracts.sandboxes import ExecExit, ExecInfo, ExecResult
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.slot_errors import ValidationError, invalid_transition
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.program_client import ProgramProcess

log = structlog.get_logger()
# Members: info, max_output; at the end also truncated, size (bytes of the result), stdout and
# stderr (base64, None if its file has it).
_RECORD = "record.json"
_OUTPUT: tuple[StreamKind, ...] = ("stdout", "stderr")
_MIN_LOG = 4096  # bytes


class ExecRun:
    """`directory` keeps its output; `max_output` bounds each stream of it there and in the result.
    With `held` bytes for each stream there, output waits for the reader that is attached, however
    long it takes, and the result has none. `done` is set when the process that was started has
    ended."""

    def __init__(
        self,
        directory: Path,
        info: ExecInfo,
        max_output: int,
        stream: StreamLog | None = None,
        held: int = 0,
    ) -> None:
        self.info, self._max_output = info, held or max_output
        self.stream = stream or StreamLog(directory, max(_MIN_LOG, self._max_output))
        self.readers = AttachedReaders(self.stream, grace=None) if held else None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.stdin: Stdin | None = None
        self.is_interactive = False  # clients may write to its stdin
        self._capture = OutputCapture(0 if held else max_output, directory)
        self._has_directory = False
        self._stored_size = 0  # bytes of the result, once that is stored
        self.waiting = 0  # callers that will read its result
        self._process: ProgramProcess | None = None
        self._pumps: tuple[Pump, ...] = ()
        self._is_late = False  # its time is up
        self._lost_bytes = 0
        self._is_unsaved = False  # the disk failed: the result is in memory only
        self._feeding: asyncio.Task[None] | None = None

    @classmethod
    def recover(cls, directory: Path) -> Self | None:
        """What an earlier agent-host stored; None if that is incomplete. A program that ran then
        has ended with it."""
        try:
            record = read_json(directory / _RECORD) or {}
            info, limit = ExecInfo.from_wire(record["info"]), int(record["max_output"])
            stream = StreamLog.recover(directory, max(_MIN_LOG, limit))
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            log.warning("cannot read a program", directory=str(directory), reason=str(error))
            return None
        run = cls(directory, info, limit, stream)
        if info.exit is None:
            run._end(over())
        else:
            stream.close()
            run._stored_size = int(record.get("size", 0))
            run.done.set_result(None)
        return run

    async def start(self, started: Awaitable[ProgramProcess]) -> None:
        """Reads the output from now on. A start that fails is the end of the program. Raises
        SpawnFailed (stage sandbox) if the sandbox has ended."""
        try:
            self._process = process = await started
        except SpawnFailed as error:
            if error.stage == "sandbox":
                raise
            self._end(not_started(error))
            return
        self.info = replace(self.info, pid=process.pid)
        self._save()
        if self.readers is not None:
            self.stream.hold(0)
            self.stream.on_writable = self._resume_pumps
        self._pumps = (
            self._pump(process.stdout, "stdout"),
            self._pump(process.stderr, "stderr"),
        )
        if process.stdin is not None:
            self.stdin = Stdin(process.stdin)

    async def run(self, timeout_s: float, grace: float) -> None:
        """Waits for the end; after `timeout_s` seconds the program is ended."""
        if self.done.done():
            return
        assert self._process is not None
        process, loop = self._process, asyncio.get_running_loop()
        timer = loop.call_later(timeout_s, self._expire, grace)
        ended = await process.ended
        timer.cancel()
        for pump in self._pumps:
            pump.discard_rest()
        if self.stdin is not None:
            self.stdin.close()
        self._end(exit_of(ended, is_late=self._is_late))
        process.forget()  # after a timeout, what is left of it is killed

    async def write_stdin(self, data: bytes, *, eof: bool, at: int | None = None) -> None:
        """`at` as of `Stdin.write`. Raises InvalidTransition if it was not started with an open
        stdin, or has closed it, and ValidationError if bytes before `at` are missing.
        """
        try:
            if self.stdin is None or not self.is_interactive or self.done.done():
                raise StdinClosed
            await self.stdin.write(data, at)
        except ValueError as error:
            raise invalid("/at", str(error)) from error
        except StdinClosed as error:
            raise invalid_transition(
                f"cannot write to program {self.info.n}: its stdin is not open",
                str(self.info.n),
                from_state="closed",
                to_state="written",
            ) from error
        if eof:
            self.stdin.close()

    def fail(self, error: Exception) -> None:
        """The start was refused: who waits for the end gets the error."""
        self.done.set_exception(error)
        self.done.exception()  # nobody need wait

    def feed(self, data: bytes, *, keep_open: bool) -> None:
        """Writes the data to its stdin in the background, then closes it unless it is kept open."""
        self._feeding = asyncio.create_task(self._feed(data, keep_open=keep_open))

    def signal(self, number: int) -> None:
        """Signals a running program."""
        if self._process is not None:
            self._process.signal(number)

    def terminate(self, grace: float) -> None:
        """TERM, and KILL after that many seconds. Idempotent."""
        if self._process is not None and not self.done.done():
            self._process.end(grace)

    @property
    def ended_at(self) -> datetime:
        """When it ended, of one that has."""
        assert self.info.exit is not None
        return self.info.exit.at

    @property
    def measured(self) -> Mapping[str, Any]:
        """What the program read back from the kernel before its exec; empty if it did not start."""
        return {} if self._process is None else self._process.measured

    @property
    def has_open_pipes(self) -> bool:
        """Whether processes that it left behind may still write; that is dropped."""
        return not all(pump.is_closed for pump in self._pumps)

    def close(self) -> None:
        """Closes its pipes and its control socket. Idempotent."""
        for pump in self._pumps:
            pump.finish()
        if self._process is not None:
            self._process.forget()

    @property
    def is_needed(self) -> bool:
        """Whether it runs, or a caller will read its result."""
        return self.info.exit is None or self.waiting > 0

    @property
    def stored_bytes(self) -> int:
        """Of its output, on disk."""
        return self.stream.size + self.result_size

    @property
    def result_size(self) -> int:
        """Bytes of output in the result."""
        return max(self._stored_size, self._capture.size)

    def result(self) -> ExecResult:
        """What is known now. Large output is read from its file."""
        if self.done.done() and not self._is_unsaved:
            return self._stored_result()
        return ExecResult(
            n=self.info.n,
            exit=self.info.exit,
            stdout=self._capture.stdout,
            stderr=self._capture.stderr,
            truncated=self._capture.truncated,
        )

    def _stored_result(self) -> ExecResult:
        directory = self.stream.directory
        record = read_json(directory / _RECORD) or {}
        stdout, stderr = (
            first_bytes(directory, kind).read_bytes()
            if (text := record[kind]) is None
            else base64.b64decode(text)
            for kind in _OUTPUT
        )
        return ExecResult(
            n=self.info.n,
            exit=self.info.exit,
            stdout=stdout,
            stderr=stderr,
            truncated=record["truncated"],
        )

    def _expire(self, grace: float) -> None:
        assert self._process is not None
        self._is_late = True
        self._process.end(grace)

    def _end(self, end: ExecExit) -> None:
        self.info = replace(self.info, exit=end)
        try:
            if self._lost_bytes:
                lost = {"state": "output-lost", "bytes": self._lost_bytes}
                self.stream.append_json("state", self.info.n, lost)
            self.stream.append_json("exit", self.info.n, end.to_wire())
        except OSError as error:
            log.error("cannot store the end of a program", n=self.info.n, reason=error.strerror)
        self._save(is_end=True)
        self.stream.close()
        self.done.set_result(None)

    def _save(self, *, is_end: bool = False) -> None:
        """If the disk fails, the result stays in memory, and is lost with this process."""
        record = {"info": self.info.to_wire(), "max_output": self._max_output}
        directory, capture = self.stream.directory, self._capture
        if is_end:
            record |= {"truncated": capture.truncated, "size": capture.size}
            for kind, data in zip(_OUTPUT, capture.in_memory, strict=True):
                record[kind] = None if data is None else base64.b64encode(data).decode()
        try:
            if not self._has_directory:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._has_directory = True
            replace_json(directory / _RECORD, record, mode=0o600, durable=False)
        except OSError as error:
            self._is_unsaved = True
            log.error("cannot store a program", n=self.info.n, reason=error.strerror)
            return
        self._is_unsaved = False
        if is_end:
            self._stored_size = capture.size
            self._capture = OutputCapture(0, directory)  # it is in files from now on

    async def _feed(self, data: bytes, *, keep_open: bool) -> None:
        if (stdin := self.stdin) is None:
            return
        try:
            await stdin.write(data)
        except StdinClosed:  # a program need not read its input
            return
        if not keep_open:
            stdin.close()

    def _resume_pumps(self) -> None:
        for pump in self._pumps:
            pump.resume()

    def _pump(self, descriptor: int, kind: StreamKind) -> Pump:
        return Pump(descriptor, partial(self._store, kind), partial(self.stream.is_full, kind))

    def _store(self, kind: StreamKind, data: bytes) -> None:
        """If the disk fails, the output is lost and reported at the end."""
        self._capture.add(kind, data)
        try:
            self.stream.append(kind, self.info.n, data)
        except OSError as error:
            if not self._lost_bytes:
                log.error("cannot store output", n=self.info.n, reason=error.strerror)
            self._lost_bytes += len(data)
