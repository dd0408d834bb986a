"""A launcher that had no agent for a while."""

import asyncio
import signal
from pathlib import Path

from agentbox.sandbox import Launch, tree
from agentbox.sandbox.client import Launcher
from agentbox.testing.until import until


class Resting(Launcher):
    """Rests at once when there is nobody."""

    program = ("agentbox.sandbox", "0")


async def test_an_idle_launcher_keeps_no_process_ready(tmp_path: Path) -> None:
    """What waited for an agent and what walks its folders have left; the next agents start and are walked all the same."""
    (tmp_path / "tmp").mkdir()
    launch = Launch(
        argv=("sleep", "60"), env={"PATH": "/usr/bin:/bin"}, cwd=str(tmp_path), roots=(str(tmp_path.resolve()),),
        private=str(tmp_path), tmp=1 << 30, branch_disk=1 << 30,
    )  # fmt: skip
    launcher = Resting()
    launcher.start()
    try:
        pid = launcher.pid or 0
        for _ in range(3):
            await until(lambda: not tree.family(pid), "none is left")
            agent = await launcher.spawn(launch)
            await until(lambda: len(tree.family(pid)) >= 3, "reaper, agent and walker are there")
            agent.end(0)
            async with asyncio.timeout(10):
                ended = await agent.ended
            agent.close_descriptors()
            assert ended.signal in (signal.SIGTERM, signal.SIGKILL)
        await until(lambda: not tree.family(pid), "none is left")
    finally:
        await launcher.close()
