"""Answers all notifications: a handler per kind of call; calls without a handler are denied and
counted.
"""

import errno
import select
import socket
from collections.abc import Callable, Iterator
from typing import Final

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.monitor.box_tasks import BoxTaskReservation
from agentbox.sandbox.seccomp import call_sets, installation
from agentbox.sandbox.spec import SyscallDenials
from agentbox.sandbox.syscalls.attributes import CALLS, FileAttributeHandler
from agentbox.sandbox.syscalls.buffers import SocketBuffers
from agentbox.sandbox.syscalls.connect import ConnectHandler
from agentbox.sandbox.syscalls.denials import DenialCounter, DeniedCall
from agentbox.sandbox.syscalls.epoll import EpollHandler
from agentbox.sandbox.syscalls.forks import ForkHandler
from agentbox.sandbox.syscalls.inotify import InotifyHandler
from agentbox.sandbox.syscalls.inotify_instances import InotifyInstances
from agentbox.sandbox.syscalls.listen import MAX_PORTS, ListenHandler
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd
from agentbox.sandbox.syscalls.paths import PathResolver, ReadablePaths, WritablePaths
from agentbox.sandbox.syscalls.ports import AgentPorts
from agentbox.sandbox.syscalls.rulesets import RulesetHandler
from agentbox.sandbox.syscalls.scheduling import SchedulerHandler
from agentbox.sandbox.syscalls.shared_mappings import SharedMappings
from agentbox.sandbox.syscalls.sigaction import SigactionHandler
from agentbox.sandbox.syscalls.sockets import SocketTable

SyscallHandler = Callable[[Notification], int | None]

_UNREACHABLE: Final = ("sendto", "sendmsg", "sendmmsg", *call_sets.NETWORK_CALLS)
_ERRORS: Final = {
    **dict.fromkeys(call_sets.UNKNOWN, errno.ENOSYS),
    **dict.fromkeys(_UNREACHABLE, errno.EACCES),
    # As on a file system without support: copying tools continue.
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr", "setxattrat"), errno.EOPNOTSUPP),
    "close_range": errno.EINVAL,  # as for an unknown flag
    "seccomp": errno.EBUSY,  # as the kernel does
}


class NotificationServer:
    """The server of one agent with at most `pids` processes, `memory` bytes (0: no limit) and
    `max_ports` bound ports. `fd` is the notification descriptor of its filter, None if `add` comes
    later. `locks`: as in AgentPorts, `box_share`: as in ForkHandler. `writable`: computed from the
    confinement if not given. `fileno` is readable when `serve` has work; `next_poll` says when it
    must be called.

    All programs of the tree share the handlers, so the limits hold over their sum, and each of them
    reaches the loopback servers of the others.
    """

    def __init__(
        self,
        fd: int | None,
        confinement: Confinement,
        locks: int,
        pids: int,
        memory: int = 0,
        max_ports: int = MAX_PORTS,
        box_share: BoxTaskReservation | None = None,
        writable: WritablePaths | None = None,
    ) -> None:
        self.denials = DenialCounter()
        self._notify_fd = notify_fd = NotificationFd(installation.current_machine())
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._starting: set[int] = set()  # filters whose denials are not counted
        self._epoll = select.epoll()
        if fd is not None:
            self.mark_started(self.add(fd))
        self.forks = ForkHandler(notify_fd, pids, box_share)
        self._handlers: dict[str, SyscallHandler] = dict.fromkeys(
            (*call_sets.FORK_CALLS, "clone"), self.forks.fork
        )
        self._handlers["mmap"] = SharedMappings(notify_fd, memory).map
        polling, rulesets = (
            EpollHandler(notify_fd, memory),
            RulesetHandler(notify_fd, memory, len(confinement.grants)),
        )
        self._handlers |= {
            **dict.fromkeys(call_sets.EPOLL_CALLS, polling.make),
            "epoll_ctl": polling.add,
        }
        self._handlers |= zip(
            call_sets.LANDLOCK_CALLS, (rulesets.make, rulesets.add, rulesets.restrict), strict=True
        )
        self._handlers["rt_sigaction"] = SigactionHandler(notify_fd).install
        scheduling = SchedulerHandler(notify_fd)
        self._handlers |= {
            "sched_setscheduler": scheduling.policy,
            "sched_setparam": scheduling.priority,
        }
        writable = writable or WritablePaths(confinement.grants, confinement.boundary)
        paths = PathResolver(notify_fd, writable)
        attributes = FileAttributeHandler(notify_fd, paths)
        self._instances = InotifyInstances()
        readable = ReadablePaths(confinement.grants, confinement.boundary)
        watching = InotifyHandler(notify_fd, memory, self._instances, paths, readable)
        self._handlers |= {
            **dict.fromkeys(call_sets.INOTIFY_CALLS, watching.make),
            call_sets.ADD_WATCH: watching.add,
        }
        self._handlers |= {call: getattr(attributes, name) for call, name in CALLS.items()}
        buffers = SocketBuffers(memory)
        sockets, ports = (
            SocketTable(notify_fd, buffers, self._unwatch),
            AgentPorts(confinement, locks),
        )
        self._handlers["socketpair"] = sockets.pair
        self._connect_handler = ConnectHandler(notify_fd, sockets, ports, buffers, self._watch)
        if confinement.ports is not None:
            listening = ListenHandler(notify_fd, sockets, ports, max_ports)
            self._handlers |= {
                "socket": sockets.make,
                "connect": self._connect_handler.connect,
                "bind": listening.bind,
                "listen": listening.listen,
            }

    def add(self, fd: int) -> int:
        """Answers the calls of one more filter, whose descriptor is owned from now on. Denials are
        not counted until `mark_started` is called with the number returned.
        """
        number = self._notify_fd.add(fd)
        self._starting.add(number)
        self._epoll.register(fd, select.EPOLLIN)
        return number

    def mark_started(self, number: int) -> None:
        """The process with that filter runs the agent's own program from now on."""
        self._starting.discard(number)

    def fileno(self) -> int:
        """Of an epoll descriptor."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Of a server without clients."""
        self._epoll.close()

    def next_poll(self) -> float | None:
        """Seconds; None while nothing is pending."""
        waits = (
            self._connect_handler.next_poll(),
            self.denials.next_poll(),
            self._instances.next_poll(),
        )
        return min((seconds for seconds in waits if seconds is not None), default=None)

    def serve(self) -> None:
        """Answers all waiting calls."""
        for fd, event in self._epoll.poll(0):
            if fd in self._callbacks:
                self._epoll.unregister(fd)
                self._callbacks.pop(fd)()
            elif event & select.EPOLLIN:
                self._handle_next(fd)
            else:  # no process with the filter is left
                self._epoll.unregister(fd)
                self._notify_fd.remove(fd)
        self._connect_handler.poll()
        self._instances.poll()

    def pop_due(self, *, flush: bool = False) -> Iterator[SyscallDenials]:
        """Denials that are due for a report."""
        return self.denials.pop_due(flush=flush)

    def _watch(self, fd: int, callback: Callable[[], None]) -> None:
        if fd in self._callbacks:
            self._epoll.modify(fd, select.EPOLLOUT)
        else:
            self._epoll.register(fd, select.EPOLLOUT)
        self._callbacks[fd] = callback

    def _unwatch(self, fd: int) -> None:
        if self._callbacks.pop(fd, None):
            self._epoll.unregister(fd)

    def _handle_next(self, fd: int) -> None:
        notification = self._notify_fd.receive(fd)
        if notification is None:
            return
        try:
            value = self._handlers.get(notification.call, _refuse)(notification)
        except OSError as error:
            if isinstance(error, DeniedCall) and notification.filter not in self._starting:
                self.denials.add(error)
            self._notify_fd.reply(notification, error=error.errno or errno.EPERM)
            return
        if value is not None:
            self._notify_fd.reply(notification, value)


def send_notify_fd(sock: socket.socket, notify_fd: int) -> None:
    """The agent's side, before exec: sends the notification descriptor to the reaper. Raises
    OSError.
    """
    socket.send_fds(sock, [b"x"], [notify_fd])


def receive_notify_fd(sock: socket.socket) -> int | None:
    """The reaper's side: the notification descriptor, None if the agent failed before
    it sent it.
    """
    data, fds, _, _ = socket.recv_fds(sock, 1, 1)
    return fds[0] if data and fds else None


def _refuse(notification: Notification) -> int | None:
    raise DeniedCall(_ERRORS.get(notification.call, errno.EPERM), notification.call)
