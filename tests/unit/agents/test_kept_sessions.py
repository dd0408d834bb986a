"""The sandbox of a session outlives agent-host, killed or stopped."""

import asyncio
from pathlib import Path

import pytest
from support.agent_host import AgentHostBox
from support.host_agents import open_orchestrator
from support.host_sandboxes import sh, shown_when
from support.session_sandboxes import MANIFEST, open_sessions, start, wait_for_file

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.plan.names import SESSION_HOST


@pytest.mark.parametrize("crash", [True, False], ids=["killed", "stopped"])
async def test_it_outlives_agent_host(tmp_path: Path, crash: bool) -> None:
    """No output that was stored is lost, and branch and HOME are opened again, once or twice."""
    box = AgentHostBox(tmp_path, manifest=MANIFEST, programs=(SESSION_HOST,), scale=50)
    box.start()
    async with open_sessions(box) as sessions:
        running, asleep = await start(sessions), await start(sessions)
        await sessions.suspend_sandbox(asleep, grace_s=0)
        started = await sh(
            sessions, running,
            "echo 1 > new; echo 2 > $HOME/kept; seq 1 2000; echo whole > done; sleep 1000",
            detach=True, timeout_s=1000.0, max_output=1 << 20,
        )  # fmt: skip
        await wait_for_file(sessions, running, "workspace/done")
        wanted = "".join(f"{n}\n" for n in range(1, 2001)).encode()
        await read_until(sessions, running, started.n, wanted)
    for generation in (2, 3):
        if crash:
            box.kill()
        else:
            box.stop()
        box.start()
        async with open_sessions(box) as sessions, open_orchestrator(box) as adapter:
            shown = await shown_when(sessions, running, lambda one: one.state == "suspended")
            assert (await sessions.get_sandbox(asleep)).state == "suspended"
            assert (shown.branch["state"], await sessions.list_reviews()) == ("open", ())
            items = [item async for item in sessions.stream_exec(running, 1, since=0, follow=True)]
            assert b"".join(item.data for item in items if item.kind == "stdout") == wanted
            assert items[-1].kind == "exit"
            assert (await sessions.resume_sandbox(running)).state == "running"
            assert (await adapter.get(running)).handle.generation == generation
            found = await sh(sessions, running, "cat new $HOME/kept")
            assert (found.stdout, found.n) == (b"1\n2\n", generation)
    async with open_sessions(box) as sessions:
        await sessions.end_sandbox(running, grace_s=0)
        assert [review.agent_id for review in await sessions.list_reviews()] == [running]
    box.stop()


async def read_until(sessions: AgentHost, sandbox_id: str, n: int, wanted: bytes) -> None:
    """agent-host has stored that output."""
    found = b""
    async with asyncio.timeout(20):
        async for item in sessions.stream_exec(sandbox_id, n, since=0, follow=True):
            found += item.data if item.kind == "stdout" else b""
            if found == wanted:
                return
