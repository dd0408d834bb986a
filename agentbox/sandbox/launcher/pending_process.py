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


def make_server(launch: Launch, locks: int, box_tasks: BoxTasks) -> NotificationServer | None:
    """The server of the tree of a launch, without a filter yet; None for an unconfined one."""
    if (confinement := launch.confinement) is None:
        return None
    return NotificationServer(
        None,
        confinement,
        locks,
        launch.pids,
        launch.memory,
        box_share=BoxTaskReservation(box_tasks, launch.box_tasks),
        writable=WritablePaths(confinement.grants, confinement.boundary),
    )


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
        self._filter = 0  # its number, once a server has taken the descriptor
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
        if self._notify_fd is None:
            self._await_ready(None)
            return
        server = NotificationServer(self._notify_fd, confinement, locks, 1)
        self._await_ready(server)
        server.close()

    def warm_up_in(self, server: NotificationServer) -> None:
        """As `warm_up`, in a tree that has a server, which answers the calls of all meanwhile."""
        notify_fd = notification_server.receive_notify_fd(self._socket)
        if notify_fd is not None:
            self._notify_fd, self._filter = notify_fd, server.add(notify_fd)
        self._await_ready(server)

    def _await_ready(self, server: NotificationServer | None) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if server is not None:
            poll.register(server, select.POLLIN)
        while all(fd != self._socket.fileno() for fd, _ in poll.poll()):
            if server is not None:
                server.serve()
        self._socket.recv(len(agent_process.READY))

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

    def run_until_exec(
        self,
        launch: Launch,
        locks: int,
        box_tasks: BoxTasks,
        server: NotificationServer | None = None,
    ) -> ExecutedProcess:
        """Answers the calls of an ordered process until its exec, and those of the rest of its tree
        if it has a `server` already. Raises StartFailed.
        """
        number = self._filter
        try:
            self._set_cpu_share(launch, shared=server is not None)
            if launch.confinement is not None:
                server = server or make_server(launch, locks, box_tasks)
                notify_fd = (
                    self._notify_fd
                    if self._notify_fd is not None
                    else notification_server.receive_notify_fd(self._socket)
                )
                if notify_fd is not None and server is not None:
                    number = number or server.add(notify_fd)
        except OSError:  # its calls could not be answered
            tree.signal_process(self.pid, signal.SIGKILL)
        messages = [json.loads(line) for line in self._read_report(server).splitlines()]
        self._socket.close()
        if not messages or "stage" in messages[-1]:
            os.waitpid(self.pid, 0)
            raise StartFailed(messages[-1] if messages else _KILLED)
        if server is not None:
            server.mark_started(number)
        return ExecutedProcess(server, messages[0]["measured"])

    def close(self) -> None:
        """Of a process that is not needed: it exits."""
        self._socket.close()
        os.close(self._report_fd)
        if self._notify_fd is not None and not self._filter:
            os.close(self._notify_fd)

    def _set_cpu_share(self, launch: Launch, *, shared: bool) -> None:
        """Sets the CPU share, with the CPUs of the whole tree if it is `shared`, and lets the
        process continue. Raises OSError and StartFailed.
        """
        try:
            agent_process.set_cpu_share(launch, self.pid, os.getpid() if shared else self.pid)
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
        """The report before exec. Calls are answered meanwhile."""
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
                    return received


def deliver_order(
    preforked: PendingProcess | None, line: bytes, stdio: tuple[int, int, int]
) -> tuple[PendingProcess, Launch]:
    """Sends the launch to the waiting process, or to a new one; returns that process. Raises
    StartFailed.
    """
    try:
        pending = preforked or PendingProcess(preforked=False)
        pending.send_order(line, stdio)
        launch = Launch.from_line(line)
        if pending.has_exited(launch):
            pending = PendingProcess(preforked=False)
            pending.send_order(line, stdio)
    except OSError as error:
        raise StartFailed({"stage": "launcher", "errno": error.errno, "why": "fork"}) from error
    return pending, launch
