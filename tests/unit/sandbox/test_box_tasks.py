"""What all agents of a box may have together, and what no sum of them exceeds."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.core.linux.landlock import PathRule
from agentbox.policy.limits.reserve import (
    MIN_TASKS,
    TASKS,
    TASKS_PER_AGENT,
    agent_tasks,
    required_tasks,
    reserved_tasks,
)
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.monitor.box_tasks import BoxTaskReservation, BoxTasks
from agentbox.sandbox.spec import Launch

MIB = 1 << 20
MARGIN = 24  # calls under way while trees are counted; the reserve is five times that at least
SYSTEM = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
)
FLOOD = """
import threading, time
threading.stack_size(65536)
over = threading.Event()
made = 0
while True:
    try: threading.Thread(target=over.wait, daemon=True).start(); made += 1
    except RuntimeError: time.sleep(0.002)
"""
HOG = "import time\nheld = bytearray(b'x') * (%d << 20)\nprint('held', flush=True)\ntime.sleep(100)"


@pytest.fixture
async def launcher() -> AsyncIterator[LauncherClient]:
    made = LauncherClient()
    yield made
    await made.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(
        argv=("true",), env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, cwd=str(tmp_path),
        roots=(str(tmp_path.resolve()),), pids=64, confinement=Confinement(grants=SYSTEM),
    )  # fmt: skip


def tasks(agents: list[AgentProcess]) -> int:
    """Processes and threads of these trees, their reapers too."""
    found = tree.descendants_by_root(tree.scan(), [one.started.reaper for one in agents])
    return sum(1 + sum(row.threads for row in rows) for rows in found.values())


async def end(*agents: AgentProcess) -> None:
    for one in agents:
        one.end(0)
        async with asyncio.timeout(20):
            await one.ended
        one.close_descriptors()


@pytest.mark.limit("box_tasks")
async def test_no_sum_of_agents_takes_the_reserve(launcher: LauncherClient, launch: Launch) -> None:
    """Three floods of threads, each far from its own limit, meet the box's; one that starts beside
    them has its minimum share, and theirs is free when they have ended."""
    most = 120
    flood = replace(launch, argv=("python3", "-I", "-c", FLOOD), box_tasks=most)
    heard: list[str] = []
    agents = [await launcher.spawn(flood) for _ in range(3)]
    for one in agents:
        one.on_denied = lambda denials: heard.append(denials.rule)
    await wait_until(
        lambda: tasks(agents) > most - 20 and "box_tasks" in heard,
        "they meet the limit of the box",
        seconds=30,
    )
    for _ in range(10):
        beside = await launcher.spawn(
            replace(launch, argv=("sh", "-c", "/bin/true; exit 7"), box_tasks=most)
        )
        assert tasks(agents) <= most + MARGIN, tasks(agents)
        assert (await beside.ended).code == 7
        beside.close_descriptors()
    assert set(heard) == {"box_tasks"}
    await end(*agents)
    alone = await launcher.spawn(flood)
    await wait_until(lambda: tasks([alone]) > 100, "all is one's again", seconds=30)
    await end(alone)


@pytest.mark.limit("box_memory")
async def test_memory_of_all_together_ends_the_largest(
    launcher: LauncherClient, launch: Launch
) -> None:
    """Each stays within its own limit; the sum exceeds the box's. The one that uses most ends, by
    that limit's name."""

    def hog(size: int) -> Launch:
        return replace(
            launch, argv=("python3", "-I", "-c", HOG % size), memory=512 * MIB, box_memory=300 * MIB
        )

    largest = await launcher.spawn(hog(180))
    await wait_until(lambda: _resident(largest) >= 180 * MIB, "it holds what it wants", seconds=30)
    others = [await launcher.spawn(hog(size)) for size in (80, 100)]
    async with asyncio.timeout(30):
        ended = await largest.ended
    assert ended.breach is not None
    assert (ended.cause, ended.breach.limit, ended.breach.cap) == ("limit", "box_memory", 300 * MIB)
    assert ended.breach.observed > 300 * MIB
    largest.close_descriptors()
    assert not any(one.ended.done() for one in others)
    await end(*others)


def _resident(agent: AgentProcess) -> int:
    row = tree.read_process(agent.started.pid)
    return row.rss * os.sysconf("SC_PAGE_SIZE") if row else 0


def test_bounds_are_booked_and_given_back() -> None:
    """A reaper that has ended uses nothing; one that died is final once its limit has stayed for
    two polls."""
    box, me = BoxTasks(), os.getpid()
    box.claim(me)
    share = BoxTaskReservation(box, 20)
    assert share.reserve(20)
    assert not share.reserve(21)
    box.claim(me + 1)
    assert box.upper_bound == 20 + TASKS_PER_AGENT
    for _ in range(2):
        box.reconcile(me, 7)
    assert box.upper_bound == 7 + TASKS_PER_AGENT
    box.free(me)
    assert (box.upper_bound, box.reapers) == (TASKS_PER_AGENT, [me + 1])


@pytest.mark.parametrize("pids", [64, 512, 1024, 2048, 65536])
def test_the_reserve_is_a_quarter_within_bounds(pids: int) -> None:
    """A box without a number has none."""
    assert MIN_TASKS <= reserved_tasks(pids) <= TASKS
    assert agent_tasks(pids) == max(TASKS_PER_AGENT, pids - reserved_tasks(pids))
    assert agent_tasks(0) == 0


@pytest.mark.parametrize(
    ("agents", "pids"),
    [(1, 2), (5, 64), (10, 16), (100, 16), (100, 128), (1000, 128), (1000, 65536)],
)
def test_what_a_box_needs_is_exact(agents: int, pids: int) -> None:
    """Each agent has its least part and one its limit; with one process less it would not."""
    needed, wanted = required_tasks(agents, pids), agents * TASKS_PER_AGENT + pids * 8
    assert agent_tasks(needed) >= wanted > agent_tasks(needed - 1)
