"""The preforked reaper: replaced when it is killed, ended when the launcher is idle."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.launcher.tree import Process
from agentbox.sandbox.spec import Launch

_TRIES = 20


class IdleAtOnce(LauncherClient):
    """Counts as idle as soon as there is no agent."""

    program = ("agentbox.sandbox", "0")


@pytest.fixture
async def launcher(request: pytest.FixtureRequest) -> AsyncIterator[LauncherClient]:
    made: LauncherClient = request.param()
    made.start()
    yield made
    await made.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Its directories are scanned."""
    (tmp_path / "tmp").mkdir()
    return Launch(
        argv=("sleep", "60"), env={"PATH": "/usr/bin:/bin"}, cwd=str(tmp_path), roots=(str(tmp_path.resolve()),),
        private=str(tmp_path), tmp=1 << 30, branch_disk=1 << 30,
    )  # fmt: skip


async def over(agent: AgentProcess) -> int | None:
    """Ends it, if it does not by itself; the signal that did."""
    agent.end(5)
    async with asyncio.timeout(10):
        ended = await agent.ended
    agent.close_descriptors()
    return ended.signal


def waiting(launcher: LauncherClient, pair: list[Process]) -> bool:
    """Whether the preforked reaper and its child are the only processes of the launcher; fills `pair` with them."""
    table = tree.scan()
    reapers = [row for row in table.values() if row.parent == launcher.pid]
    pair[:] = [*reapers, *tree.descendants(table, [row.pid for row in reapers])]
    return len(reapers) == 1 and len(pair) == 2


@pytest.mark.parametrize("launcher", [IdleAtOnce], indirect=True)
async def test_an_idle_launcher_keeps_no_process_ready(
    launcher: LauncherClient, launch: Launch
) -> None:
    """The preforked reaper and the disk scanner have exited, and the launcher sleeps; the next
    agents start and are still scanned."""
    pid = launcher.pid or 0
    for _ in range(3):
        await wait_until(lambda: not tree.quick_descendants(pid), "none is left")
        agent = await launcher.spawn(launch)
        await wait_until(
            lambda: len(tree.quick_descendants(pid)) >= 3, "reaper, agent and scanner are there"
        )
        assert await over(agent) == signal.SIGTERM
    await wait_until(lambda: not tree.quick_descendants(pid), "none is left")
    await wait_until(lambda: sleeps(pid), "it waits, and uses no processor")


def sleeps(pid: int) -> bool:
    row = tree.read_process(pid)
    return row is not None and row.state == "S"


async def pair_of(launcher: LauncherClient) -> list[Process]:
    """The preforked reaper and its child, which becomes the agent."""
    found: list[Process] = []
    await wait_until(lambda: waiting(launcher, found), "a pair waits")
    return found


async def killed(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    await wait_until(
        lambda: (row := tree.read_process(process.pid)) is None or row.state == "Z", "it is gone"
    )


@pytest.mark.parametrize("launcher", [LauncherClient], indirect=True)
async def test_a_killed_spare_reaper_is_replaced(launcher: LauncherClient, launch: Launch) -> None:
    """The next agent runs."""
    unwalked = replace(launch, private="")
    await killed((await pair_of(launcher))[0])
    await over(await launcher.spawn(unwalked))


@pytest.mark.parametrize("launcher", [LauncherClient], indirect=True)
async def test_a_start_says_that_the_child_of_the_spare_reaper_was_killed(
    launcher: LauncherClient, launch: Launch
) -> None:
    """A reaper that was not ready yet forks another child; one that was ready fails the start with
    the reason."""
    unwalked, told = replace(launch, private=""), ""
    for _ in range(_TRIES):
        await killed((await pair_of(launcher))[1])
        try:
            await over(await launcher.spawn(unwalked))
        except SpawnFailed as error:
            told = str(error)
            break
    assert "the process was killed" in told
    await over(await launcher.spawn(unwalked))
