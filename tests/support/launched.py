"""What tests do with an agent process: start a shell, read its output, wait for its end."""

import asyncio
import os
from dataclasses import replace

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.client import AgentProcess
from agentbox.sandbox.spec import Launch


def shell(launch: Launch, script: str) -> Launch:
    return replace(launch, argv=("sh", "-c", script))


async def read_all(fd: int) -> bytes:
    def read() -> bytes:
        with os.fdopen(fd, "rb") as stream:
            return stream.read()

    return await asyncio.to_thread(read)


async def over(agent: AgentProcess) -> tuple[int | None, int | None, str]:
    """Waits for the end; code, signal, cause."""
    async with asyncio.timeout(10):
        ended = await agent.ended
    agent.close_descriptors()
    return ended.code, ended.signal, ended.cause


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def below(pid: int | None) -> list[int]:
    """Living descendants of a process, itself included."""
    assert pid is not None
    table = tree.scan()
    rows = [table[pid]] if pid in table else []
    return [row.pid for row in [*rows, *tree.descendants(table, [pid])] if row.state not in "ZX"]
