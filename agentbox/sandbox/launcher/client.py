"""The host's side of the launcher: starts it, asks it for agents, and learns how they end. For one event loop."""

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
from agentbox.sandbox.launcher.control import Control
from agentbox.sandbox.monitor.seen import Seen
from agentbox.sandbox.spec import Denials, Ended, Launch, Started

_DATAGRAM = 4096
_CLOSE_SECONDS = 3.0


class Agent:
    """One running tree. `stdin` (where asked for), `stdout` and `stderr` are descriptors that belong to the caller."""

    def __init__(self, stdin: int | None, stdout: int, stderr: int, control: Control, seen: Seen) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.seen = seen
        self.started = Started(pid=0, start_ticks=0, reaper=0, measured={})
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.control = control
        self.on_denied: Callable[[Denials], None] = _nobody  # told at most ten times a second, and all before `ended`

    def signal(self, number: int) -> None:
        """To the leader; STOP and CONT to every process of the tree."""
        whole = number in (signal.SIGSTOP, signal.SIGCONT)
        self.control.order({"do": "tree" if whole else "signal", "signal": int(number)})

    def end(self, grace: float) -> None:
        """TERM to the whole tree, KILL after `grace` seconds to what is left. `ended` tells when none lives."""
        self.control.order({"do": "end", "grace": grace})

    def close_descriptors(self) -> None:
        """For a caller that will not read the output."""
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None:
                os.close(fd)


class Launcher:
    """A launcher process, started on first use and again after it died. Every agent dies with it."""

    program: ClassVar[tuple[str, ...]] = ("agentbox.sandbox",)  # what tests of the layers replace

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._commands: socket.socket | None = None
        self._seen: dict[int, Seen] = {}  # by number of the agent, as is the next
        self._buried: dict[int, asyncio.Future[bool]] = {}
        self._last = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """Of the launcher process, None before the first agent."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts the process ahead of the first agent."""
        self._running()

    async def spawn(self, launch: Launch, *, stdin: Literal["null", "pipe"] = "null") -> Agent:
        """Returns after exec succeeded. Raises SpawnFailed; then no process is left."""
        commands = self._running()
        self._last = number = self._last + 1
        self._seen[number] = Seen()
        self._buried[number] = asyncio.get_running_loop().create_future()
        try:
            agent = await self._begin(commands, number, launch, stdin)
        except BaseException:
            self._forget(number)
            raise
        task = asyncio.create_task(self._follow(agent, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return agent

    async def _begin(self, commands: socket.socket, number: int, launch: Launch, stdin: str) -> Agent:
        with contextlib.ExitStack() as made:  # what was opened when one more cannot be
            try:
                ours, theirs = _pipes(stdin, made)
                near, far = socket.socketpair()
            except OSError as error:
                raise SpawnFailed("launcher", "agent-host has no descriptor left", error.errno or 0) from error
            made.pop_all()
        try:
            await _send(commands, {"number": number, **launch.watched()}, [far.fileno(), *theirs])
        except OSError as error:
            near.close()
            _close(ours)
            raise SpawnFailed("launcher", "the launcher does not answer", error.errno or 0) from error
        finally:
            far.close()
            _close(theirs)
        control = Control(near)
        agent = Agent(ours[0], ours[1], ours[2], control, self._seen[number])  # type: ignore[arg-type]
        try:
            agent.started = await _first_word(control, launch)
        except BaseException:  # cancelled too: a closed control socket ends the tree
            control.close()
            agent.close_descriptors()
            raise
        return agent

    async def close(self) -> None:
        """Ends every tree, waits until all reapers are gone, and ends the launcher. Idempotent."""
        commands, self._commands = self._commands, None
        if commands is not None:
            asyncio.get_running_loop().remove_reader(commands)
            commands.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        if self._process is not None:
            await _exit_of(self._process.pid)
            self._process.wait()
            self._process = None

    def _running(self) -> socket.socket:
        if self._commands is not None:
            return self._commands
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.setblocking(False)
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", *self.program, str(far.fileno())],
                pass_fds=[far.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            )  # fmt: skip
        asyncio.get_running_loop().add_reader(near, self._heard, near)
        self._commands = near
        return near

    def _heard(self, commands: socket.socket) -> None:
        try:
            data = commands.recv(_DATAGRAM)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._lost(commands)
            return
        word = json.loads(data)
        number = word.pop("number")
        if seen := self._seen.get(number):
            seen.hear(word)
        if "clean" in word and (buried := self._buried.get(number)):
            buried.set_result(word["clean"])

    def _lost(self, commands: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(commands)
        commands.close()
        process, self._process = self._process, None
        self._commands = None
        if process is not None:
            process.wait()
        for future in self._buried.values():
            if not future.done():
                future.set_result(False)

    def _forget(self, number: int) -> Breach | None:
        self._buried.pop(number)
        return self._seen.pop(number).breach

    async def _follow(self, agent: Agent, number: int) -> None:
        last = await _last_word(agent)
        await agent.control.gone()
        if self._commands is not None:
            await self._buried[number]  # the launcher has ended what a killed reaper left
        agent.control.close()
        ended = _ended(last, self._forget(number))
        if not agent.ended.done():  # whoever waited for it may have given up
            agent.ended.set_result(ended)


async def _first_word(control: Control, launch: Launch) -> Started:
    with contextlib.suppress(OSError):  # told by the missing answer
        await control.send(launch.to_line())
    line = await control.line()
    if not line:
        raise SpawnFailed("launcher", "no process could be made for it")
    word = json.loads(line)
    if word.pop("event") == "failed":
        await control.gone()
        raise SpawnFailed(word["stage"], word["why"], 0)
    return Started(**word)


async def _last_word(agent: Agent) -> Mapping[str, Any]:
    """What the reaper says at the end, empty when it says nothing; what it says before is about refusals."""
    while line := await agent.control.line():
        word: dict[str, Any] = json.loads(line)
        if word.pop("event") != "denied":
            return word
        agent.on_denied(Denials(**word))
    return {}


def _nobody(_denials: Denials) -> None:
    """Before anybody listens."""


async def _exit_of(pid: int) -> None:
    """Returns once that child has exited; it is still to be waited for. Takes no thread."""
    loop, watched = asyncio.get_running_loop(), os.pidfd_open(pid)
    exited = asyncio.Event()
    loop.add_reader(watched, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _ended(last: Mapping[str, Any], breach: Breach | None) -> Ended:
    if "status" not in last or last["status"] is None:
        return Ended(code=None, signal=None, cause="launcher", breach=breach)
    status: int = last["status"]
    if os.WIFSIGNALED(status):
        return Ended(code=None, signal=os.WTERMSIG(status), cause=last["cause"], breach=breach)
    return Ended(code=os.WEXITSTATUS(status), signal=None, cause=last["cause"], breach=breach)


def _pipes(stdin: str, made: contextlib.ExitStack) -> tuple[list[int | None], list[int]]:
    """Our ends and theirs, each as stdin, stdout, stderr; `made` closes them. Raises OSError."""

    def pipe() -> tuple[int, int]:
        ends = os.pipe2(os.O_CLOEXEC)
        for end in ends:
            made.callback(os.close, end)
        return ends

    inward: tuple[int, int | None]
    if stdin == "pipe":
        inward = pipe()
    else:
        inward = (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), None)
        made.callback(os.close, inward[0])
    out, err = pipe(), pipe()
    return [inward[1], out[0], err[0]], [inward[0], out[1], err[1]]


def _close(fds: list[int] | list[int | None]) -> None:
    for fd in fds:
        if fd is not None:
            os.close(fd)


async def _send(commands: socket.socket, order: Mapping[str, Any], fds: list[int]) -> None:
    data = json.dumps(order).encode()
    while True:
        try:
            socket.send_fds(commands, [data], fds)
            return
        except BlockingIOError:  # the launcher is behind: it needs about 1 ms an agent
            await asyncio.sleep(0.001)
