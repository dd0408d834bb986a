"""Where all calls that wait are answered: each kind by its own file, and what no file answers is refused and counted."""

import errno
import select
import socket
from collections.abc import Callable, Iterator
from typing import Final

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.monitor.box_tasks import BoxShare
from agentbox.sandbox.seccomp import agent_filter as seccomp
from agentbox.sandbox.spec import Denials
from agentbox.sandbox.syscalls.anonymous import SharedMappings
from agentbox.sandbox.syscalls.attributes import CALLS, Attributes
from agentbox.sandbox.syscalls.buffers import Buffers
from agentbox.sandbox.syscalls.connect import Connecting
from agentbox.sandbox.syscalls.denials import Counts, Denied
from agentbox.sandbox.syscalls.forks import Forks
from agentbox.sandbox.syscalls.handlers import Handlers
from agentbox.sandbox.syscalls.instances import Instances
from agentbox.sandbox.syscalls.listen import MOST_PORTS, Listening
from agentbox.sandbox.syscalls.listener import Listener, Notice
from agentbox.sandbox.syscalls.paths import Paths, Readable, Writable
from agentbox.sandbox.syscalls.polling import Polling
from agentbox.sandbox.syscalls.ports import Ports
from agentbox.sandbox.syscalls.rulesets import Rulesets
from agentbox.sandbox.syscalls.scheduling import Scheduling
from agentbox.sandbox.syscalls.sockets import Sockets
from agentbox.sandbox.syscalls.watching import Watching

Handler = Callable[[Notice], int | None]

_UNREACHABLE: Final = ("sendto", "sendmsg", "sendmmsg", *seccomp.NETWORK)
_ERRORS: Final = {
    **dict.fromkeys(seccomp.UNKNOWN, errno.ENOSYS),
    **dict.fromkeys(_UNREACHABLE, errno.EACCES),
    # As on a file system that has none: a tool that copies them goes on.
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr", "setxattrat"), errno.EOPNOTSUPP),
    "close_range": errno.EINVAL,  # as for a flag that it does not know
    "seccomp": errno.EBUSY,  # as the kernel says it
}


class Desk:
    """Of one agent, of `pids` processes and `memory` bytes at most (0: any number) and `most_ports` of its own. `locks`: as for Ports, `share`: as for Forks. `writable`: found from the confinement where not given. `fileno` is readable when `serve` has something to do; `patience` says when it wants to be called."""

    def __init__(
        self, fd: int, confinement: Confinement, locks: int, pids: int, memory: int = 0, most_ports: int = MOST_PORTS,
        share: BoxShare | None = None, writable: Writable | None = None,
    ) -> None:  # fmt: skip
        self.denials = Counts()
        self._listener = listener = Listener(fd, seccomp.of_this_machine())
        self._then: dict[int, Callable[[], None]] = {}
        self._ready = select.epoll()
        self._ready.register(listener.fileno(), select.EPOLLIN)
        self._handlers: dict[str, Handler] = dict.fromkeys((*seccomp.FORKS, "clone"), Forks(listener, pids, share).fork)
        self._handlers["mmap"] = SharedMappings(listener, memory).map
        polling, rulesets = Polling(listener, memory), Rulesets(listener, memory, len(confinement.grants))
        self._handlers |= {**dict.fromkeys(seccomp.POLLS, polling.make), "epoll_ctl": polling.add}
        self._handlers |= zip(seccomp.RULESETS, (rulesets.make, rulesets.add, rulesets.restrict), strict=True)
        self._handlers["rt_sigaction"] = Handlers(listener).install
        scheduling = Scheduling(listener)
        self._handlers |= {"sched_setscheduler": scheduling.policy, "sched_setparam": scheduling.priority}
        writable = writable or Writable(confinement.grants, confinement.boundary)
        paths = Paths(listener, writable)
        attributes = Attributes(listener, paths)
        self._instances = Instances()
        readable = Readable(confinement.grants, confinement.boundary)
        watching = Watching(listener, memory, self._instances, paths, readable)
        self._handlers |= {**dict.fromkeys(seccomp.WATCHES, watching.make), seccomp.ADD_WATCH: watching.add}
        self._handlers |= {call: getattr(attributes, name) for call, name in CALLS.items()}
        buffers = Buffers(memory)
        sockets, ports = Sockets(listener, buffers, self._unwatch), Ports(confinement, locks)
        self._handlers["socketpair"] = sockets.pair
        self._connecting = Connecting(listener, sockets, ports, buffers, self._watch)
        if confinement.ports is not None:
            listening = Listening(listener, sockets, ports, most_ports)
            self._handlers |= {
                "socket": sockets.make, "connect": self._connecting.connect,
                "bind": listening.bind, "listen": listening.listen,
            }  # fmt: skip

    def fileno(self) -> int:
        """Of an epoll descriptor."""
        return self._ready.fileno()

    def close(self) -> None:
        """Of a desk where nobody asks."""
        self._ready.close()

    def patience(self) -> float | None:
        """Seconds; None while nothing is pending."""
        waits = self._connecting.patience(), self.denials.patience(), self._instances.patience()
        return min((one for one in waits if one is not None), default=None)

    def serve(self) -> None:
        """Answers what waits now."""
        for fd, event in self._ready.poll(0):
            if fd in self._then:
                self._ready.unregister(fd)
                self._then.pop(fd)()
            elif event & select.EPOLLIN:
                self._answer()
            else:  # no process is left that could ask
                self._ready.unregister(fd)
        self._connecting.look()
        self._instances.look()

    def told(self, *, all_of_them: bool = False) -> Iterator[Denials]:
        """Refusals that are due to be told."""
        return self.denials.due(all_of_them=all_of_them)

    def _watch(self, fd: int, then: Callable[[], None]) -> None:
        if fd in self._then:
            self._ready.modify(fd, select.EPOLLOUT)
        else:
            self._ready.register(fd, select.EPOLLOUT)
        self._then[fd] = then

    def _unwatch(self, fd: int) -> None:
        if self._then.pop(fd, None):
            self._ready.unregister(fd)

    def _answer(self) -> None:
        notice = self._listener.receive()
        if notice is None:
            return
        try:
            value = self._handlers.get(notice.call, _refuse)(notice)
        except OSError as error:
            if isinstance(error, Denied):
                self.denials.add(error)
            self._listener.answer(notice, error=error.errno or errno.EPERM)
            return
        if value is not None:
            self._listener.answer(notice, value)


def hand_over(to: socket.socket, listener: int) -> None:
    """The agent's side, before its exec: sends the listener to the reaper. Raises OSError."""
    socket.send_fds(to, [b"x"], [listener])


def receive(at: socket.socket) -> int | None:
    """The reaper's side: the listener, None when the agent never came so far."""
    data, fds, _, _ = socket.recv_fds(at, 1, 1)
    return fds[0] if data and fds else None


def _refuse(notice: Notice) -> int | None:
    raise Denied(_ERRORS.get(notice.call, errno.EPERM), notice.call)
