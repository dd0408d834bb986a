"""What waits for an agent: when there is one, and when there is none."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentbox.sandbox import Launch, SpawnFailed, tree
from agentbox.sandbox.client import Agent, Launcher
from agentbox.sandbox.tree import Process
from agentbox.testing.until import until


class Resting(Launcher):
    """Rests at once when there is nobody."""

    program = ("agentbox.sandbox", "0")


@pytest.fixture
async def launcher(request: pytest.FixtureRequest) -> AsyncIterator[Launcher]:
    made: Launcher = request.param()
    made.start()
    yield made
    await made.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Its folders are walked."""
    (tmp_path / "tmp").mkdir()
    return Launch(
        argv=("sleep", "60"), env={"PATH": "/usr/bin:/bin"}, cwd=str(tmp_path), roots=(str(tmp_path.resolve()),),
        private=str(tmp_path), tmp=1 << 30, branch_disk=1 << 30,
    )  # fmt: skip


async def over(agent: Agent) -> int | None:
    """Ends it, if it does not by itself; the signal that did."""
    agent.end(5)
    async with asyncio.timeout(10):
        ended = await agent.ended
    agent.close_descriptors()
    return ended.signal


def waiting(launcher: Launcher, pair: list[Process]) -> bool:
    """Whether a keeper and its child are all that the launcher has; fills `pair` with them."""
    table = tree.scan()
    keepers = [row for row in table.values() if row.parent == launcher.pid]
    pair[:] = [*keepers, *tree.descendants(table, [row.pid for row in keepers])]
    return len(keepers) == 1 and len(pair) == 2


@pytest.mark.parametrize("launcher", [Resting], indirect=True)
async def test_an_idle_launcher_keeps_no_process_ready(launcher: Launcher, launch: Launch) -> None:
    """What waited for an agent and what walks its folders have left; the next agents start and are walked all the same."""
    pid = launcher.pid or 0
    for _ in range(3):
        await until(lambda: not tree.family(pid), "none is left")
        agent = await launcher.spawn(launch)
        await until(lambda: len(tree.family(pid)) >= 3, "reaper, agent and walker are there")
        assert await over(agent) == signal.SIGTERM
    await until(lambda: not tree.family(pid), "none is left")


@pytest.mark.parametrize("launcher", [Launcher], indirect=True)
async def test_a_keeper_that_was_killed_while_it_waited_is_replaced(launcher: Launcher, launch: Launch) -> None:
    """Or what it had forked: the next agents run, and the one that met the gap is told why it did not."""
    unwalked, pair = replace(launch, private=""), list[Process]()
    await over(await launcher.spawn(unwalked))
    for kill in (0, 1):  # the keeper; the process that was to be the agent
        await until(lambda: waiting(launcher, pair), "a pair waits")
        killed = pair[kill].pid
        os.kill(killed, signal.SIGKILL)
        await until(lambda killed=killed: (row := tree.look(killed)) is None or row.state == "Z", "it is gone")
        if kill:
            with pytest.raises(SpawnFailed, match="it was killed"):
                await launcher.spawn(unwalked)
        await over(await launcher.spawn(unwalked))
