"""The process that is to be the agent, from its fork to its exec, as its keeper sees it. The other side: `agent_process.py`."""

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
from agentbox.sandbox.monitor.box_tasks import BoxShare, BoxTasks
from agentbox.sandbox.spec import Launch
from agentbox.sandbox.syscalls import desk
from agentbox.sandbox.syscalls.desk import Desk
from agentbox.sandbox.syscalls.paths import Writable

_BLOCK = 1 << 16
_KILLED: Final = {"stage": "launcher", "errno": 0, "why": "it was killed"}


class Born(NamedTuple):
    """An agent after its exec, and where its calls are answered."""

    desk: Desk | None
    measured: Mapping[str, Any]


class NotBorn(Exception):
    """No exec: `word` says at which stage, with which errno, and why. The process is gone."""

    def __init__(self, word: Mapping[str, Any]) -> None:
        super().__init__(word)
        self.word = word


class Newborn:
    """Forked before it is known what it will be."""

    def __init__(self, *, ahead: bool) -> None:
        """`ahead`: there is time until it is told. Raises OSError where no process or descriptor is left."""
        self._listener: int | None = None  # of one that was forked ahead
        self._reading, writing = os.pipe()
        self._near, far = socket.socketpair()
        try:
            self.pid = os.fork()
        except OSError:
            for end in (self._near, far):
                end.close()
            os.close(self._reading)
            os.close(writing)
            raise
        if self.pid == 0:
            self._near.close()
            agent_process.become(report=writing, handover=far.fileno(), ahead=ahead)
        far.close()
        os.close(writing)

    def rehearse(self, confinement: Confinement, locks: int) -> None:
        """Answers the calls that it tries while it waits, as they will be answered. Raises OSError."""
        self._listener = desk.receive(self._near)
        answering = Desk(self._listener, confinement, locks, 1) if self._listener is not None else None
        poll = select.poll()
        poll.register(self._near, select.POLLIN)
        if answering is not None:
            poll.register(answering, select.POLLIN)
        while all(fd != self._near.fileno() for fd, _ in poll.poll()):
            if answering is not None:
                answering.serve()
        self._near.recv(len(agent_process.READY))
        if answering is not None:
            answering.close()

    def tell(self, line: bytes, stdio: tuple[int, int, int]) -> None:
        """What to be, a launch as a line: it goes on while the keeper reads that line itself."""
        try:
            agent_process.hand_order(self._near, line, stdio)
        except OSError:  # it is gone, and its report says why, or cannot be told
            tree.send_one(self.pid, signal.SIGKILL)

    def left(self, launch: Launch) -> bool:
        """True when it has left, since it was forked ahead and that launch needs another filter. Raises NotBorn."""
        if self._listener is None or agent_process.is_usual(launch):
            return False
        self._near.close()
        for end in (self._listener, self._reading):
            os.close(end)
        if os.waitpid(self.pid, 0)[1]:
            raise NotBorn(_KILLED)
        return True

    def begin(self, launch: Launch, locks: int, box: BoxTasks) -> Born:
        """Answers the calls of one that was told, until its exec. Raises NotBorn."""
        answering = None
        try:
            self._share(launch)
            if (asked := launch.confinement) is not None:
                writable = Writable(asked.grants, asked.boundary)
                if (listener := self._listener if self._listener is not None else desk.receive(self._near)) is not None:
                    share = BoxShare(box, launch.box_tasks)
                    answering = Desk(listener, asked, locks, launch.pids, launch.memory, share=share, writable=writable)
        except OSError:  # nobody could answer it
            tree.send_one(self.pid, signal.SIGKILL)
        messages = [json.loads(line) for line in self._report(answering).splitlines()]
        self._near.close()
        if not messages or "stage" in messages[-1]:
            os.waitpid(self.pid, 0)
            raise NotBorn(messages[-1] if messages else _KILLED)
        return Born(answering, messages[0]["measured"])

    def _share(self, launch: Launch) -> None:
        """Its share of the processor, and that it may go on. Raises OSError, and NotBorn."""
        try:
            agent_process.share_of_processor(launch, self.pid)
        except ProcessLookupError:  # its report says why
            return
        except OSError as error:
            tree.send_one(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            word = {"stage": "limits", "errno": error.errno or 0, "why": f"limits: {error.strerror}"}
            raise NotBorn(word) from error
        with suppress(OSError):
            self._near.send(b"x")

    def _report(self, answering: Desk | None) -> bytes:
        """What it says before its exec; its own calls are answered meanwhile, and are no denials of the agent."""
        found = b""
        poll = select.poll()
        poll.register(self._reading, select.POLLIN)
        if answering is not None:
            poll.register(answering, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd != self._reading and answering is not None:
                    answering.serve()
                elif data := os.read(self._reading, _BLOCK):
                    found += data
                else:
                    os.close(self._reading)
                    if answering is not None:
                        answering.denials.forget()
                    return found
