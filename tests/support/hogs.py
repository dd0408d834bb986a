"""Agents that exhaust one resource each, and an agent whose round trips show the effect on
others.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentbox.contracts.orchestrator import AgentHandle, AgentInfo, AgentSpec, Limits, Orchestrator
from agentbox.core.ids import uuid7

MIB: Final = 1 << 20
_LINE = b"a line of the neighbour's\n"


@dataclass(frozen=True, kw_only=True)
class Hog:
    """`script` is Python. `reason`: how it ends; `limit`: the limit of its breach, "" if the kernel
    just denies.
    """

    script: str
    reason: str
    limit: str
    limits: Mapping[str, Any]


_WALL = 4.0  # seconds, for agents that only end by time

HOGS: Final[Mapping[str, Hog]] = {
    "cpu": Hog(
        script="import os\nfor _ in range(3): os.fork()\nwhile True: pass",
        reason="timeout",
        limit="agent_wall_seconds",
        limits={"wall_seconds": _WALL},
    ),
    "memory": Hog(
        script="held = []\nwhile True: held.append(bytearray(b'x') * (4 << 20))",
        reason="exit",
        limit="",
        limits={"memory": 256 * MIB},
    ),
    "memory of many": Hog(
        script=(
            "import os\nfor _ in range(3): os.fork()\nheld = []\n"
            "while len(held) < 40: held.append(bytearray(b'x') * (4 << 20))\n"
            "import time; time.sleep(60)"
        ),
        reason="limit",
        limit="memory",
        limits={"memory": 256 * MIB},
    ),
    "memory of no first thread": Hog(  # /proc shows each as a zombie, without memory
        script=(
            "import ctypes, os, threading, time\n"
            "def hold():\n"
            " held = []\n"
            " while len(held) < 40: held.append(bytearray(b'x') * (4 << 20))\n"
            " time.sleep(60)\n"
            "for _ in range(3): os.fork()\n"
            "threading.Thread(target=hold).start()\n"
            "ctypes.CDLL(None).pthread_exit(None)"
        ),
        reason="limit",
        limit="memory",
        limits={"memory": 256 * MIB},
    ),
    "processes": Hog(
        script=(
            "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            "while True:\n try: os.fork()\n except OSError: pass"
        ),
        reason="limit",
        limit="pids",
        limits={"wall_seconds": _WALL, "pids": 64},
    ),
    "disk": Hog(
        script=(
            "import tempfile\nwith tempfile.NamedTemporaryFile() as out:\n"
            " while True: out.write(bytes(1 << 20))"
        ),
        reason="limit",
        limit="tmp",
        limits={"tmp": 64 * MIB},
    ),
    "branch": Hog(
        script=(
            "import itertools\n"
            "for number in itertools.count(): "
            "open(f'filler-{number}', 'wb').write(bytes(4 << 20))"
        ),
        reason="limit",
        limit="branch_disk",
        limits={"branch_disk": 32 * MIB},
    ),
    "shared memory": Hog(
        script=(
            "import os, pathlib, tempfile, time\n"
            "own = pathlib.Path(tempfile.gettempdir()).parent.name\n"  # its agent id
            "for number, mib in enumerate([16] * 15 + [64]):\n"
            " name = f'/dev/shm/agentbox-hog-{own}-{number}'\n"
            " os.posix_fallocate(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600), 0, mib << 20)\n"
            "time.sleep(60)"
        ),
        reason="limit",
        limit="memory",
        limits={"memory": 256 * MIB},
    ),
    "sockets": Hog(
        script=(
            "import socket\nheld = []\n"
            "while True:\n held.append(socket.socketpair())\n for one in held[-1]:\n"
            "  one.setblocking(False)\n  try:\n   while True: one.send(bytes(1 << 16))\n  except "
            "BlockingIOError: pass"
        ),
        reason="exit",
        limit="",
        limits={"memory": 128 * MIB},
    ),
    "output": Hog(
        script="import os\nwhile True: os.write(1, b'x' * 65536)",
        reason="timeout",
        limit="agent_wall_seconds",
        limits={"wall_seconds": _WALL},
    ),
    "descriptors": Hog(
        script="import os\nheld = []\nwhile True: held.append(os.open('/dev/null', os.O_RDONLY))",
        reason="exit",
        limit="",
        limits={"fds": 256},
    ),
}


async def start(adapter: Orchestrator, kind: str, **limits: Any) -> AgentHandle:
    """Start that hog with its limits and `limits`."""
    hog = HOGS[kind]
    spec = AgentSpec(
        name=f"hog-{kind.replace(' ', '-')}",
        argv=("/usr/bin/python3", "-I", "-c", hog.script),
        profile="sandboxed",
        limits=Limits(**{**hog.limits, **limits}),
    )
    return await adapter.spawn(spec, request_id=uuid7())


async def wait_ended(adapter: Orchestrator, handle: AgentHandle) -> AgentInfo:
    """Wait for its end and return its info."""
    async for item in adapter.stream(handle.agent_id):
        if item.kind == "exit":
            break
    return await adapter.get(handle.agent_id)


def expected(info: AgentInfo, kind: str) -> tuple[str, str]:
    """Return the expected (reason, limit): if the reaper handles forks, a forking hog ends by time
    only.
    """
    row: Any = info.isolation["processes"]
    if kind == "processes" and row["by"] == "reaper":
        return HOGS["cpu"].reason, HOGS["cpu"].limit
    return HOGS[kind].reason, HOGS[kind].limit


class EchoAgent:
    """An agent that echoes its input; `samples` are its round trips in milliseconds."""

    def __init__(self, adapter: Orchestrator) -> None:
        self._adapter = adapter
        self.samples: list[float] = []
        self._handle: AgentHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "EchoAgent":
        spec = AgentSpec(name="neighbour", argv=("cat",), profile="sandboxed", stdin="pipe")
        self._handle = await self._adapter.spawn(spec, request_id=uuid7())
        self._pipes = await self._adapter.attach(self._handle)
        self._task = asyncio.create_task(self._measure())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        assert self._handle is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._pipes.aclose()
        await self._adapter.terminate(self._handle, grace_s=0)

    async def _measure(self) -> None:
        replies = aiter(self._pipes)
        while True:
            sent, remaining = time.perf_counter(), len(_LINE)
            await self._pipes.send(_LINE)
            while remaining > 0:
                remaining -= len(await anext(replies))
            self.samples.append((time.perf_counter() - sent) * 1000)
            await asyncio.sleep(0.01)
