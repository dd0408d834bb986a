"""Calls that the reaper refuses are counted exactly, and reported to the host in few messages."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.spec import Launch, SyscallDenials
from agentbox.sandbox.syscalls.denials import DenialCounter, DeniedCall

SYSTEM = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
)


@pytest.fixture
async def launcher() -> AsyncIterator[LauncherClient]:
    made = LauncherClient()
    yield made
    await made.close()


async def started(
    launcher: LauncherClient, folder: Path, script: str, heard: list[SyscallDenials]
) -> AgentProcess:
    agent = await launcher.spawn(
        Launch(
            argv=("python3", "-I", "-c", script), env={"PATH": "/usr/bin:/bin", "HOME": str(folder)}, cwd=str(folder), roots=(str(folder.resolve()),),
            confinement=Confinement(grants=SYSTEM),
        )
    )  # fmt: skip
    agent.on_denied = heard.append
    return agent


async def test_each_refusal_is_counted_once(launcher: LauncherClient, tmp_path: Path) -> None:
    """Thousands in a row arrive as a few messages with an exact sum, all of them before the end is
    reported."""
    script = """
import socket
for _ in range(3000):
    try: socket.socket(socket.AF_UNIX)
    except PermissionError: pass
for _ in range(3):
    try: socket.create_connection(("192.0.2.1", 80))
    except PermissionError: pass
"""
    heard: list[SyscallDenials] = []
    start = time.monotonic()
    agent = await started(launcher, tmp_path, script, heard)
    async with asyncio.timeout(30):
        ended = await agent.ended
    agent.close_descriptors()
    assert ended.code == 0
    total: Counter[str] = Counter()
    for one in heard:
        total[one.rule] += one.count
    assert total == {"socket": 3000, "connect": 3}
    assert len(heard) <= 4 + 20 * (time.monotonic() - start)  # two rules, ten times a second
    assert [one.detail for one in heard if one.rule == "connect"][-1] == "192.0.2.1:80"


async def test_a_start_counts_nothing(launcher: LauncherClient, tmp_path: Path) -> None:
    """What the leader tries before its exec is no doing of the agent's."""
    heard: list[SyscallDenials] = []
    agent = await started(launcher, tmp_path, "pass", heard)
    assert (await agent.ended).code == 0
    agent.close_descriptors()
    assert heard == []


def test_counts_wait_for_their_time() -> None:
    """Reported at once after a long pause, then not before the next tenth of a second; the last
    detail stays."""
    counts = DenialCounter()
    counts.add(DeniedCall(13, "connect", "a"))
    assert [one.count for one in counts.pop_due()] == [1]
    counts.add(DeniedCall(13, "connect", "b"))
    counts.add(DeniedCall(13, "connect", "c" * 999))
    assert list(counts.pop_due()) == []
    assert 0 < (counts.next_poll() or 0) <= 0.1
    assert list(counts.pop_due(flush=True)) == [
        SyscallDenials(rule="connect", count=2, detail="c" * 200)
    ]
    assert counts.next_poll() is None
