"""The launcher, its reapers and real processes."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until
from support.launched import below, descriptors, over, read_all, shell

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.agent_process import MAX_PENDING_SIGNALS
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.spec import Launch


@pytest.fixture
async def launcher() -> AsyncIterator[LauncherClient]:
    made = LauncherClient()
    yield made
    await made.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(
        argv=("true",),
        env={"PATH": "/usr/bin:/bin"},
        cwd=str(tmp_path),
        roots=(str(tmp_path.resolve()),),
    )


async def test_the_leader_is_in_a_session_of_its_own(
    launcher: LauncherClient, launch: Launch
) -> None:
    """Session and group are the leader's own; its parent is the reaper, whose parent is the launcher."""
    agent = await launcher.spawn(replace(launch, argv=("sleep", "1000")))
    pid = agent.started.pid
    assert os.getsid(pid) == os.getpgid(pid) == pid
    table = tree.scan()
    assert table[pid].parent == agent.started.reaper
    assert table[agent.started.reaper].parent == launcher.pid
    agent.end(0)
    assert await over(agent) == (None, signal.SIGTERM, "")


@pytest.mark.parametrize(
    ("changed", "stage"),
    [
        ({"argv": ("no-such-program",)}, "exec"),
        ({"argv": ("/",)}, "exec"),
        ({"argv": ("true", "x" * 3_000_000)}, "exec"),
        ({"cwd": "/usr"}, "cwd"),
        ({"cwd": "/no/such"}, "cwd"),
    ],
)
async def test_a_failure_names_its_stage(
    launcher: LauncherClient, launch: Launch, changed: dict[str, object], stage: str
) -> None:
    """SpawnFailed names the stage, no descriptor leaks, and the next spawn works."""
    await over(await launcher.spawn(launch))
    await asyncio.sleep(0)  # the transport of the first one closes with the next turn of the loop
    before = descriptors()
    with pytest.raises(SpawnFailed) as caught:
        await launcher.spawn(replace(launch, **changed))  # type: ignore[arg-type]
    assert caught.value.stage == stage
    await wait_until(lambda: descriptors() == before, "no descriptor is left")
    assert await over(await launcher.spawn(launch)) == (0, None, "")


async def test_limits_hold_for_the_leader(launcher: LauncherClient, launch: Launch) -> None:
    """The leader measures the requested limits, and may not raise them."""
    asked = replace(
        shell(launch, "ulimit -Hn; nice; ulimit -n 99999"), fds=77, cpu=1, memory=1 << 30
    )
    agent = await launcher.spawn(asked)
    found = agent.started.measured
    assert (found["nofile"], found["data"], found["cpus"], found["nice"]) == (77, 1 << 30, 1, 10)
    assert found["no_new_privs"]
    assert (await read_all(agent.stdout)).split() == [b"77", b"10"]


async def test_no_agent_takes_all_pending_signals_of_the_user(
    launcher: LauncherClient, launch: Launch
) -> None:
    """A timer uses one of a sum that the kernel keeps for the user: processes that are not agents
    have the rest of it."""
    code = """
import ctypes, resource, signal
libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
made = 0
while made < 50_000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    made += 1
print(resource.getrlimit(resource.RLIMIT_SIGPENDING)[1], made, flush=True)
signal.pause()
"""
    agent = await launcher.spawn(replace(launch, argv=(sys.executable, "-c", code)))
    limit, made = map(int, (await asyncio.to_thread(os.read, agent.stdout, 100)).split())
    assert limit == MAX_PENDING_SIGNALS
    assert made <= MAX_PENDING_SIGNALS
    libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
    assert libc.timer_create(1, None, ctypes.byref(timer)) == 0, os.strerror(ctypes.get_errno())
    assert libc.timer_delete(timer) == 0
    agent.end(0)
    await over(agent)


@pytest.mark.timed
async def test_a_tree_that_will_not_end_is_killed(launcher: LauncherClient, launch: Launch) -> None:
    """TERM ignored by all: ended right after the grace, double-forked processes in new sessions
    too."""
    inner = "trap '' TERM HUP; sleep 1000; sleep 1000"
    agent = await launcher.spawn(
        shell(launch, f"trap '' TERM; (setsid sh -c \"{inner}\" &); sleep 1000; sleep 1000")
    )
    await wait_until(lambda: len(below(agent.started.reaper)) >= 4, "the tree is there")
    reaper, start = agent.started.reaper, time.monotonic()
    agent.end(0.2)
    await over(agent)
    assert 0.2 <= time.monotonic() - start < 2
    assert below(reaper) == []


async def test_a_tree_beyond_its_processes_ends(launcher: LauncherClient, launch: Launch) -> None:
    """Processes that continue to fork while they are killed all end, and the limit is reported.
    (The script itself stops at 512: the machine that runs the tests must not depend on this.)"""
    doubling = "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 1000; }; f 8"
    agent = await launcher.spawn(replace(shell(launch, doubling), pids=60))
    reaper = agent.started.reaper
    async with asyncio.timeout(20):
        ended = await agent.ended
    assert ended.cause == "limit"
    assert ended.breach is not None
    assert ended.breach.limit == "pids"
    assert below(reaper) == []
    agent.close_descriptors()


async def test_time_is_bounded(launcher: LauncherClient, launch: Launch) -> None:
    """After `wall_seconds` the tree ends, cause `timeout`, however deaf it is."""
    deaf = replace(
        shell(launch, "trap '' TERM; sleep 1000; sleep 1000"), wall_seconds=1, grace_seconds=0.2
    )
    agent = await launcher.spawn(deaf)
    assert await over(agent) == (None, signal.SIGKILL, "timeout")


@pytest.mark.parametrize("victim", ["reaper", "launcher"])
async def test_a_killed_reaper_takes_the_tree_along(
    launcher: LauncherClient, launch: Launch, victim: str
) -> None:
    """SIGKILL of reaper or launcher: no process of the tree runs when the end is reported; the next
    spawn works."""
    agent = await launcher.spawn(shell(launch, "(setsid sleep 1000 &); sleep 1000 & sleep 1000"))
    await wait_until(lambda: len(below(agent.started.reaper)) >= 5, "the tree is there")
    members = below(agent.started.reaper)
    pid = agent.started.reaper if victim == "reaper" else launcher.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert (await over(agent))[2] == "launcher"
    await wait_until(lambda: not [one for one in members if below(one)], "the tree is gone")
    assert await over(await launcher.spawn(launch)) == (0, None, "")


async def test_a_stopped_leader_still_ends(launcher: LauncherClient, launch: Launch) -> None:
    """A tree under SIGSTOP gets its TERM and exits without waiting for the grace."""
    agent = await launcher.spawn(replace(launch, argv=("sleep", "1000")))
    agent.signal(signal.SIGSTOP)
    await wait_until(lambda: tree.scan()[agent.started.pid].state == "T", "it is stopped")
    agent.end(30)
    assert await over(agent) == (None, signal.SIGTERM, "")


async def test_an_order_too_late_costs_nothing(launcher: LauncherClient, launch: Launch) -> None:
    """Terminated repeatedly while it ends: each tree reports its real end, though some commands
    find no reader."""
    for _ in range(20):
        agent = await launcher.spawn(replace(launch, argv=("sleep", "1000")))
        ordering = asyncio.create_task(_keep_asking(agent))
        assert await over(agent) == (None, signal.SIGTERM, "")
        ordering.cancel()


async def _keep_asking(agent: AgentProcess) -> None:
    while True:
        agent.end(5)
        await asyncio.sleep(0.001)  # each command costs the reaper a scan of all processes


async def test_many_at_once(launcher: LauncherClient, launch: Launch) -> None:
    """50 concurrent spawns each return their own exact code."""
    agents = await asyncio.gather(*(launcher.spawn(shell(launch, f"exit {n}")) for n in range(50)))
    assert [await over(agent) for agent in agents] == [(n, None, "") for n in range(50)]


async def test_a_cancelled_spawn_leaves_no_process(
    launcher: LauncherClient, launch: Launch
) -> None:
    """Whenever it is cancelled, no reaper and no leader remains."""
    await over(await launcher.spawn(launch))
    await wait_until(
        lambda: len(below(launcher.pid)) == 3,
        "the launcher, and the reaper and process that wait for an agent",
    )
    for delay in (0, 0.0005, 0.001, 0.002, 0.004):
        task = asyncio.create_task(launcher.spawn(replace(launch, argv=("sleep", "1000"))))
        await asyncio.sleep(delay)
        task.cancel()
        (found,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(found, AgentProcess):
            found.end(0)
            await over(found)
    await wait_until(lambda: len(below(launcher.pid)) == 3, "as before")


async def test_close_ends_everything(launch: Launch) -> None:
    """After `close` neither the launcher nor any tree runs; closing again does nothing."""
    launcher = LauncherClient()
    agent = await launcher.spawn(shell(launch, "(setsid sleep 1000 &); sleep 1000"))
    await wait_until(lambda: len(below(agent.started.reaper)) >= 4, "the tree is there")
    members = below(launcher.pid)
    await launcher.close()
    await launcher.close()
    await wait_until(lambda: not [pid for pid in members if below(pid)], "nothing lives")
    agent.close_descriptors()


async def test_a_host_without_descriptors_loses_none(
    launcher: LauncherClient, launch: Launch
) -> None:
    """However often one is requested while none is free: a typed error, the same number open, and
    the next agent runs."""
    await over(await launcher.spawn(launch))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    for free in range(10):
        resource.setrlimit(
            resource.RLIMIT_NOFILE,
            (max(map(int, os.listdir("/proc/self/fd"))) + free, hard),  # noqa: PTH208
        )
        held = []
        try:
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.open(os.devnull, os.O_RDONLY))
            for fd in held[:free]:
                os.close(fd)
            del held[:free]
            if free < 7:  # null, two pipes, a socket pair
                with pytest.raises(SpawnFailed, match="no descriptor"):
                    await launcher.spawn(launch)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for fd in held:
                os.close(fd)
        assert descriptors() == before
    assert await over(await launcher.spawn(launch)) == (0, None, "")


async def test_descriptors_that_are_under_way_keep_no_agent_from_starting(
    launcher: LauncherClient, launch: Launch
) -> None:
    """The kernel counts those of a user, whichever process sent them (man 7 unix, ETOOMANYREFS); an
    agent may leave some forever."""
    near, far = socket.socketpair()
    with near, far, Path(os.devnull).open("rb") as held:
        for _ in range(2):
            socket.send_fds(near, [b"x"], [held.fileno()] * 250)
        system = tuple(
            PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc")
        )
        agent = await launcher.spawn(
            replace(launch, fds=64, confinement=Confinement(grants=system))
        )
        assert await over(agent) == (0, None, "")
        assert agent.started.measured["nofile"] == 64
