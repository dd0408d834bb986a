"""A session with many running processes gets a lower priority; others stay where they are."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import cpu_priority
from agentbox.sandbox.monitor.cpu_priority import (
    AUTOGROUPS,
    OVERLOAD_NICE,
    OVERLOAD_SECONDS,
    CpuPriority,
)
from agentbox.sandbox.spec import AGENT_NICE

THREADS = """
import hashlib, threading
def run():
    while True: hashlib.pbkdf2_hmac("sha256", b"x", b"x", 100000)
for _ in range(4): threading.Thread(target=run).start()
"""
CROWD = "import os\nfor _ in range(2): os.fork()\nwhile True: pass"


@pytest.fixture
def crowd() -> Iterator[int]:
    """Four processes that run."""
    with subprocess.Popen([sys.executable, "-c", CROWD], start_new_session=True) as made:
        yield made.pid
        os.killpg(made.pid, signal.SIGKILL)


def rows_of(pid: int) -> list[tree.Process]:
    table = tree.scan()
    return [table[pid], *tree.descendants(table, [pid])]


def nice_of(pid: int) -> set[int]:
    return {os.getpriority(os.PRIO_PROCESS, row.pid) for row in rows_of(pid)}


async def test_a_crowd_steps_back(crowd: int) -> None:
    """After a second of more running processes than cores, each of them, and each that it starts."""
    found = CpuPriority()

    def looked() -> bool:
        found.update(rows_of(crowd), 1)
        return nice_of(crowd) == {OVERLOAD_NICE}

    began = time.monotonic()
    await wait_until(looked, "all of it stepped back")
    assert time.monotonic() - began >= OVERLOAD_SECONDS


async def test_a_crowd_of_threads_steps_back() -> None:
    """Threads of one process that run are as many, and each of them steps back, whichever of them ends meanwhile."""
    with subprocess.Popen([sys.executable, "-c", THREADS]) as made:
        found = CpuPriority()

        def looked() -> bool:
            found.update(rows_of(made.pid), 1)
            told = {os.getpriority(os.PRIO_PROCESS, number) for number in tree.thread_ids(made.pid)}
            return told == {OVERLOAD_NICE}

        try:
            await wait_until(looked, "every thread stepped back")
            assert len(tree.thread_ids(made.pid)) == 5
        finally:
            made.kill()


async def test_what_ended_is_forgotten(crowd: int) -> None:
    """Nothing is stored of sessions that have ended, however many an agent creates."""
    found = CpuPriority()
    found._sessions = dict.fromkeys(range(1 << 23, (1 << 23) + 1000), AGENT_NICE)
    found.update(rows_of(crowd), 8)
    assert len(found._sessions) <= 1


async def test_who_has_the_cores_stays(crowd: int) -> None:
    """No more running processes than cores are acceptable, and without a share there is no limit."""
    for cores in (8, 0):
        found, until_then = CpuPriority(), time.monotonic() + OVERLOAD_SECONDS + 0.3
        while time.monotonic() < until_then:
            found.update(rows_of(crowd), cores)
            time.sleep(0.05)
    assert OVERLOAD_NICE not in nice_of(crowd)


@pytest.mark.skipif(not AUTOGROUPS, reason="this kernel does not share by session")
async def test_a_session_of_an_agent_is_behind(crowd: int) -> None:
    """The kernel confirms it; a session that the agent creates later is adjusted too."""
    found = CpuPriority()

    def told() -> bool:
        found.update(rows_of(crowd), 8)
        return Path(f"/proc/{crowd}/autogroup").read_text().split()[-1] == str(AGENT_NICE)

    await wait_until(told, "the session has the nice value")


def test_a_process_that_is_gone_is_no_error() -> None:
    """It may exit between the check and the change."""
    gone = tree.Process(1 << 22, 1, "R", 0, 0, 1, 1 << 22)
    found = CpuPriority()
    found.update([gone], 1)
    cpu_priority._renice_threads(gone.pid, OVERLOAD_NICE)
    assert cpu_priority._set_session_nice(gone.pid, OVERLOAD_NICE)
