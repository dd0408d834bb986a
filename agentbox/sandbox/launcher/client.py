"""The host's side of the launcher: requests agents and reports how they end. For one event loop."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from agentbox.policy.limits.gauge import Breach
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.control import ControlSocket
from agentbox.sandbox.launcher.pipes import close_fds, open_pipes
from agentbox.sandbox.launcher.program_client import ProgramProcess, start_program
from agentbox.sandbox.monitor.limit_readings import LimitReadings
from agentbox.sandbox.spec import Launch, ProcessEnded, ProcessStarted, SyscallDenials

_DATAGRAM = 4096
_CLOSE_SECONDS = 3.0


class AgentProcess:
    """One running tree. `stdin` (if requested), `stdout` and `stderr` belong to the caller."""

    def __init__(
        self,
        stdin: int | None,
        stdout: int,
        stderr: int,
        control: ControlSocket,
        readings: LimitReadings,
    ) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.readings = readings
        self.started = ProcessStarted(pid=0, start_ticks=0, reaper=0, measured={})
        self.ended: asyncio.Future[ProcessEnded] = asyncio.get_running_loop().create_future()
        self.control = control
        self.on_denied: Callable[[SyscallDenials], None] = (
            _ignore_denials  # called at most ten times a second, and always before `ended` is set
        )

    def signal(self, number: int) -> None:
        """Signals the leader; STOP and CONT go to every process of the tree."""
        to_tree = number in (signal.SIGSTOP, signal.SIGCONT)
        self.control.send_order({"do": "tree" if to_tree else "signal", "signal": int(number)})

    async def start_program(
        self, launch: Launch, *, stdin: Literal["null", "pipe"] = "null"
    ) -> ProgramProcess:
        """Of a sandbox: starts a program in it; returns after a successful exec. Raises
        SpawnFailed.
        """
        return await start_program(self.control, launch, stdin)

    def end(self, grace: float) -> None:
        """Sends TERM to the tree, KILL after `grace` seconds. `ended`: no process is left."""
        self.control.send_order({"do": "end", "grace": grace})

    def close_descriptors(self) -> None:
        """Closes the streams, for a caller that does not read the output."""
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None:
                os.close(fd)


class LauncherClient:
    """A launcher process, started on first use and restarted. Its death ends every agent."""

    program: ClassVar[tuple[str, ...]] = ("agentbox.sandbox",)  # replaced by layer tests

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._commands: socket.socket | None = None
        self._readings: dict[int, LimitReadings] = {}  # by agent number, like `_reaped`
        self._reaped: dict[int, asyncio.Future[bool]] = {}
        self._last_number = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """The pid of the launcher process, None before the first agent."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts the process before the first agent."""
        self._ensure_running()

    async def spawn(
        self, launch: Launch, *, stdin: Literal["null", "pipe"] = "null"
    ) -> AgentProcess:
        """Returns after a successful exec. Raises SpawnFailed; no process is left then."""
        commands = self._ensure_running()
        self._last_number = number = self._last_number + 1
        self._readings[number] = LimitReadings()
        self._reaped[number] = asyncio.get_running_loop().create_future()
        try:
            agent = await self._start_agent(commands, number, launch, stdin)
        except BaseException:
            self._discard(number)
            raise
        task = asyncio.create_task(self._await_end(agent, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return agent

    async def _start_agent(
        self, commands: socket.socket, number: int, launch: Launch, stdin: str
    ) -> AgentProcess:
        with contextlib.ExitStack() as cleanup:  # closes what was opened if a later open fails
            try:
                local_fds, remote_fds = open_pipes(stdin, cleanup)
                local, remote = socket.socketpair()
            except OSError as error:
                raise SpawnFailed(
                    "launcher", "no descriptor left in agent-host", error.errno or 0
                ) from error
            cleanup.pop_all()
        try:
            await _send(
                commands, {"number": number, **launch.tree_limits()}, [remote.fileno(), *remote_fds]
            )
        except OSError as error:
            local.close()
            close_fds(local_fds)
            raise SpawnFailed(
                "launcher", "the launcher does not answer", error.errno or 0
            ) from error
        finally:
            remote.close()
            close_fds(remote_fds)
        control = ControlSocket(local)
        agent = AgentProcess(
            local_fds[0],
            local_fds[1],  # type: ignore[arg-type]
            local_fds[2],  # type: ignore[arg-type]
            control,
            self._readings[number],
        )
        try:
            agent.started = await _read_start_report(control, launch)
        except BaseException:  # also on cancellation: a closed control socket ends the tree
            control.close()
            agent.close_descriptors()
            raise
        return agent

    async def close(self) -> None:
        """Ends every tree, waits until all reapers have exited, ends the launcher. Idempotent."""
        commands, self._commands = self._commands, None
        if commands is not None:
            asyncio.get_running_loop().remove_reader(commands)
            commands.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        if self._process is not None:
            await _wait_for_exit(self._process.pid)
            self._process.wait()
            self._process = None

    def _ensure_running(self) -> socket.socket:
        if self._commands is not None:
            return self._commands
        local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        local.setblocking(False)
        with remote:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", *self.program, str(remote.fileno())],
                pass_fds=[remote.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            )
        asyncio.get_running_loop().add_reader(local, self._on_message, local)
        self._commands = local
        return local

    def _on_message(self, commands: socket.socket) -> None:
        try:
            data = commands.recv(_DATAGRAM)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._on_disconnect(commands)
            return
        message = json.loads(data)
        number = message.pop("number")
        if readings := self._readings.get(number):
            readings.on_message(message)
        if "clean" in message and (reaped := self._reaped.get(number)):
            reaped.set_result(message["clean"])

    def _on_disconnect(self, commands: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(commands)
        commands.close()
        process, self._process = self._process, None
        self._commands = None
        if process is not None:
            process.wait()
        for future in self._reaped.values():
            if not future.done():
                future.set_result(False)

    def _discard(self, number: int) -> Breach | None:
        self._reaped.pop(number)
        return self._readings.pop(number).breach

    async def _await_end(self, agent: AgentProcess, number: int) -> None:
        report = await _read_end_report(agent)
        await agent.control.wait_closed()
        if self._commands is not None:
            await self._reaped[number]  # the launcher has ended the rest of the tree
        agent.control.close()
        ended = _process_ended(report, self._discard(number))
        if not agent.ended.done():  # the waiter may have been cancelled
            agent.ended.set_result(ended)


async def _read_start_report(control: ControlSocket, launch: Launch) -> ProcessStarted:
    with contextlib.suppress(OSError):  # reported by the missing reply
        await control.send(launch.to_line())
    line = await control.read_line()
    if not line:
        raise SpawnFailed("launcher", "no process can be created")
    report = json.loads(line)
    if report.pop("event") == "failed":
        await control.wait_closed()
        raise SpawnFailed(report["stage"], report["why"], 0)
    return ProcessStarted(**report)


async def _read_end_report(agent: AgentProcess) -> Mapping[str, Any]:
    """The reaper's last report, empty if there is none. Passes denials on."""
    while line := await agent.control.read_line():
        report: dict[str, Any] = json.loads(line)
        if report.pop("event") != "denied":
            return report
        agent.on_denied(SyscallDenials(**report))
    return {}


def _ignore_denials(_denials: SyscallDenials) -> None:
    """The callback before one is set."""


async def _wait_for_exit(pid: int) -> None:
    """Returns once that child has exited; it still has to be reaped. Uses no thread."""
    loop, pidfd = asyncio.get_running_loop(), os.pidfd_open(pid)
    exited = asyncio.Event()
    loop.add_reader(pidfd, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def _process_ended(report: Mapping[str, Any], breach: Breach | None) -> ProcessEnded:
    if "status" not in report or report["status"] is None:
        return ProcessEnded(code=None, signal=None, cause="launcher", breach=breach)
    status: int = report["status"]
    if os.WIFSIGNALED(status):
        return ProcessEnded(
            code=None, signal=os.WTERMSIG(status), cause=report["cause"], breach=breach
        )
    return ProcessEnded(
        code=os.WEXITSTATUS(status), signal=None, cause=report["cause"], breach=breach
    )


async def _send(commands: socket.socket, order: Mapping[str, Any], fds: list[int]) -> None:
    data = json.dumps(order).encode()
    while True:
        try:
            socket.send_fds(commands, [data], fds)
            return
        except BlockingIOError:  # the launcher is busy: it needs about 1 ms per agent
            await asyncio.sleep(0.001)
