"""The process that becomes the agent, from fork to exec, as the reaper sees it. The child's side is
in `agent_process.py`.
"""

import json
import os
import select
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import agent_process, tree
from agentbox.sandbox.monitor.box_tasks import BoxTaskReservation, BoxTasks
from agentbox.sandbox.spec import Launch
from agentbox.sandbox.syscalls import notification_server
from agentbox.sandbox.syscalls.notification_server import NotificationServer
from agentbox.sandbox.syscalls.paths import WritablePaths

_BLOCK = 1 << 16
_KILLED: Final = {"stage": "launcher", "errno": 0, "why": "the process was killed"}


class ExecutedProcess(NamedTuple):
    """An agent after exec, and the server of its notifications."""

    notification_server: NotificationServer | None
    measured: Mapping[str, Any]


class StartFailed(Exception):
    """No exec: `report` has the stage, the errno and the reason. The process has exited."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        super().__init__(report)
        self.report = report


class PendingProcess:
    """A process that is forked before its launch is known."""

    def __init__(self, *, preforked: bool) -> None:
        """`preforked`: the order comes later. Raises OSError if no process or
        descriptor is left.
        """
        self._notify_fd: int | None = None  # of a preforked process
        self._report_fd, report_writer = os.pipe()
        self._socket, remote = socket.socketpair()
        try:
            self.pid = os.fork()
        except OSError:
            for end in (self._socket, remote):
                end.close()
            os.close(self._report_fd)
            os.close(report_writer)
            raise
        if self.pid == 0:
            self._socket.close()
            agent_process.run(
                report_fd=report_writer, handover_fd=remote.fileno(), preforked=preforked
            )
        remote.close()
        os.close(report_writer)

    def warm_up(self, confinement: Confinement, locks: int) -> None:
        """Answers the calls that the process makes in its warm-up, as later ones are. Raises
        OSError.
        """
        self._notify_fd = notification_server.receive_notify_fd(self._socket)
        server = (
            NotificationServer(self._notify_fd, confinement, locks, 1)
            if self._notify_fd is not None
            else None
        )
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if server is not None:
            poll.register(server, select.POLLIN)
        while all(fd != self._socket.fileno() for fd, _ in poll.poll()):
            if server is not None:
                server.serve()
        self._socket.recv(len(agent_process.READY))
        if server is not None:
            server.close()

    def send_order(self, line: bytes, stdio: tuple[int, int, int]) -> None:
        """Sends the launch as a line; the process continues while the reaper parses that line
        itself.
        """
        try:
            agent_process.send_order(self._socket, line, stdio)
        except OSError:  # it has exited: its report may have the reason
            tree.signal_process(self.pid, signal.SIGKILL)

    def has_exited(self, launch: Launch) -> bool:
        """True if the preforked process exited because the launch needs another filter. Raises
        StartFailed.
        """
        if self._notify_fd is None or agent_process.uses_default_filter(launch):
            return False
        self._socket.close()
        for end in (self._notify_fd, self._report_fd):
            os.close(end)
        if os.waitpid(self.pid, 0)[1]:
            raise StartFailed(_KILLED)
        return True

    def run_until_exec(self, launch: Launch, locks: int, box_tasks: BoxTasks) -> ExecutedProcess:
        """Answers the calls of an ordered process until its exec. Raises StartFailed."""
        server = None
        try:
            self._set_cpu_share(launch)
            if (confinement := launch.confinement) is not None:
                writable = WritablePaths(confinement.grants, confinement.boundary)
                if (
                    notify_fd := self._notify_fd
                    if self._notify_fd is not None
                    else notification_server.receive_notify_fd(self._socket)
                ) is not None:
                    share = BoxTaskReservation(box_tasks, launch.box_tasks)
                    server = NotificationServer(
                        notify_fd,
                        confinement,
                        locks,
                        launch.pids,
                        launch.memory,
                        box_share=share,
                        writable=writable,
                    )
        except OSError:  # its calls could not be answered
            tree.signal_process(self.pid, signal.SIGKILL)
        messages = [json.loads(line) for line in self._read_report(server).splitlines()]
        self._socket.close()
        if not messages or "stage" in messages[-1]:
            os.waitpid(self.pid, 0)
            raise StartFailed(messages[-1] if messages else _KILLED)
        return ExecutedProcess(server, messages[0]["measured"])

    def _set_cpu_share(self, launch: Launch) -> None:
        """Sets the CPU share and lets the process continue. Raises OSError and StartFailed."""
        try:
            agent_process.set_cpu_share(launch, self.pid)
        except ProcessLookupError:  # its report has the reason
            return
        except OSError as error:
            tree.signal_process(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            report = {
                "stage": "limits",
                "errno": error.errno or 0,
                "why": f"limits: {error.strerror}",
            }
            raise StartFailed(report) from error
        with suppress(OSError):
            self._socket.send(b"x")

    def _read_report(self, server: NotificationServer | None) -> bytes:
        """The report before exec. The process's own calls are answered meanwhile and not counted as
        denials.
        """
        received = b""
        poll = select.poll()
        poll.register(self._report_fd, select.POLLIN)
        if server is not None:
            poll.register(server, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd != self._report_fd and server is not None:
                    server.serve()
                elif data := os.read(self._report_fd, _BLOCK):
                    received += data
                else:
                    os.close(self._report_fd)
                    if server is not None:
                        server.denials.discard()
                    return received
