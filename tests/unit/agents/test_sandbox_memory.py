"""What a flood of output costs agent-host: memory does not grow with the output that results have."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until
from support.agent_host import AgentHostBox
from support.host_sandboxes import create, get, put, run

from agentbox.agents.runs.capture import IN_MEMORY
from agentbox.agents.sandboxes.sandbox import KEPT_OUTPUT
from agentbox.agents.streams.stream_log import files_size
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.orchestrator import MAX_OUTPUT
from agentbox.core.slot_errors import NotFound

PROGRAMS = 16  # the default of `sandboxes.max_exec`
MIB = 1 << 20
# Each writes more than `max_output` to both streams, then waits for `go`.
FLOOD = f"""
head -c {MAX_OUTPUT + 1} /dev/zero | tr '\\0' o; head -c {MAX_OUTPUT + 1} /dev/zero | tr '\\0' e >&2
: > full.$0; until [ -e go ]; do sleep 0.05; done
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


def reset_peak(pid: int) -> None:
    """The peak of resident memory is from now on (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def memory(pid: int, name: str) -> int:
    """Bytes: VmRSS now, VmHWM at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


async def written(host: AgentHost, sandbox_id: str, path: str) -> None:
    """Returns once the file exists."""
    async with asyncio.timeout(60):
        while True:
            try:
                await get(host, sandbox_id, path)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return


async def test_a_flood_of_output_is_not_held_in_memory(host: AgentHost, box: AgentHostBox) -> None:
    """Sixteen programs with the largest results: while they run each has IN_MEMORY bytes of each
    stream; at the end their results, of 16 MiB each, are read and sent one after another."""
    one = await create(host)
    await run(host, one, "true")
    pid = box.pid
    before = memory(pid, "VmRSS")
    reset_peak(pid)
    waiting = [
        asyncio.create_task(
            run(host, one, "sh", "-c", FLOOD, str(number), max_output=MAX_OUTPUT, timeout_s=60)
        )
        for number in range(PROGRAMS)
    ]
    for number in range(PROGRAMS):
        await written(host, one, f"workspace/full.{number}")
    growth = memory(pid, "VmHWM") - before
    assert growth < PROGRAMS * 2 * IN_MEMORY + 32 * MIB, growth // MIB
    reset_peak(pid)
    await put(host, one, "workspace/go", b"")
    results = await asyncio.gather(*waiting)
    for result in results:
        assert result.truncated
        assert result.stdout == b"o" * MAX_OUTPUT
        assert result.stderr == b"e" * MAX_OUTPUT
    execs = next(box.paths.prefix.rglob(f"streams/{one}/exec"))
    await wait_until(lambda: files_size(execs) <= KEPT_OUTPUT, "the oldest are dropped")
    assert files_size(execs) > MAX_OUTPUT
    (last,) = [one.n for one in (await host.get_sandbox(one)).execs][-1:]
    assert [item async for item in host.stream_exec(one, last, since=0, follow=False)]
    # A result is there as bytes, in base64, in JSON, and encoded: 1 + 3 * 4/3 times 16 MiB.
    growth = memory(pid, "VmHWM") - before
    assert growth < 2 * 5 * 2 * MAX_OUTPUT, growth // MIB
