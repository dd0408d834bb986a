"""The host's side of one program of a sandbox. For one event loop."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from typing import Any

from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.control import ControlSocket
from agentbox.sandbox.launcher.pipes import close_fds, open_pipes
from agentbox.sandbox.spec import Launch, ProgramEnded


class ProgramProcess:
    """One running program. `stdin` (if requested), `stdout` and `stderr` belong to the caller.
    `measured`: as of `ProcessStarted`.
    """

    def __init__(self, fds: list[int | None], control: ControlSocket) -> None:
        self.stdin, self.stdout, self.stderr = fds[0], fds[1] or 0, fds[2] or 0
        self._control = control
        self.pid = 0
        self.measured: dict[str, Any] = {}
        self.ended: asyncio.Future[ProgramEnded] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def send_launch(self, launch: Launch) -> bytes:
        """Before the reaper has the other end, so that it need not wait for it; the rest is for
        `start`.
        """
        return self._control.send_now(launch.to_line())

    async def start(self, unsent: bytes) -> None:
        """Raises SpawnFailed; the descriptors are closed then."""
        try:
            if unsent:
                with contextlib.suppress(OSError):  # reported by the missing reply
                    await self._control.send(unsent)
            line = await self._control.read_line()
            if not line:
                raise SpawnFailed("sandbox", "the sandbox has ended", 0)
            report = json.loads(line)
            if report["event"] == "failed":
                error = SpawnFailed(report["stage"], report["why"])
                error.errno = report["errno"]
                raise error
        except BaseException:  # also on cancellation: a closed control socket ends the program
            self._control.close()
            self.close_descriptors()
            raise
        self.pid, self.measured = report["pid"], report["measured"]
        self._task = asyncio.create_task(self._await_end())

    def signal(self, number: int) -> None:
        """Signals the leader; STOP and CONT go to every process of the program."""
        to_all = number in (signal.SIGSTOP, signal.SIGCONT)
        self._control.send_order({"do": "tree" if to_all else "signal", "signal": int(number)})

    def end(self, grace: float) -> None:
        """Sends TERM to the program, KILL after `grace` seconds."""
        self._control.send_order({"do": "end", "grace": grace})

    def forget(self) -> None:
        """The reaper no longer manages it, and kills it if its leader still runs. Idempotent."""
        self._control.close()

    def close_descriptors(self) -> None:
        """Closes the streams, for a caller that does not read the output."""
        close_fds([self.stdin, self.stdout, self.stderr])

    async def _await_end(self) -> None:
        line = await self._control.read_line()
        status = json.loads(line)["status"] if line else None
        if self.ended.done():  # its waiter was cancelled
            return
        if status is None:
            self.ended.set_result(ProgramEnded(code=None, signal=None))
        elif os.WIFSIGNALED(status):
            self.ended.set_result(ProgramEnded(code=None, signal=os.WTERMSIG(status)))
        else:
            self.ended.set_result(ProgramEnded(code=os.WEXITSTATUS(status), signal=None))


async def start_program(sandbox: ControlSocket, launch: Launch, stdin: str) -> ProgramProcess:
    """Starts a program in the sandbox with that control socket. Raises SpawnFailed."""
    with contextlib.ExitStack() as cleanup:  # closes what was opened if a later open fails
        try:
            local_fds, remote_fds = open_pipes(stdin, cleanup)
            local, remote = socket.socketpair()
        except OSError as error:
            raise SpawnFailed(
                "launcher", "no descriptor left in agent-host", error.errno or 0
            ) from error
        cleanup.pop_all()
    program = ProgramProcess(local_fds, ControlSocket(local))
    unsent = program.send_launch(launch)
    try:
        await sandbox.send_fds({"do": "start"}, [remote.fileno(), *remote_fds])
    except OSError as error:
        program.forget()
        program.close_descriptors()
        raise SpawnFailed("sandbox", "the sandbox has ended", error.errno or 0) from error
    finally:
        remote.close()
        close_fds(remote_fds)
    await program.start(unsent)
    return program
