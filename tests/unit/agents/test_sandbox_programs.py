"""Input, output and ends of programs in a sandbox on a real agent-host."""

import asyncio
from collections.abc import Iterator

import pytest
from support.agent_host import AgentHostBox
from support.host_sandboxes import create, run, sh, shown_when

from agentbox.agents.sandboxes.sandbox import KEPT_EXECS
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    ValidationError,
)

COUNT = "import sys; print(len(sys.stdin.buffer.read()))"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


async def test_input_and_bounded_output(host: AgentHost) -> None:
    """All of the input is read; of the output the first bytes are returned."""
    one = await create(host)
    data = bytes(range(256)) * 4096
    counted = await run(host, one, "wc", "-c", stdin=data)
    assert counted.stdout.split() == [str(len(data)).encode()]
    cut = await sh(host, one, "echo 12345; echo 1234567 >&2", max_output=4)
    assert (cut.stdout, cut.stderr, cut.truncated) == (b"1234", b"1234", True)
    assert (await run(host, one, "cat")).stdout == b""


async def test_a_long_program_keeps_its_result_beside_many_short_ones(host: AgentHost) -> None:
    """Those that ended first are dropped, whatever their number."""
    one = await create(host)
    long = asyncio.create_task(sh(host, one, "while ! test -e stop; do sleep 0.1; done; echo kept"))
    for _ in range(KEPT_EXECS + 1):
        await run(host, one, "true")
    await sh(host, one, "touch stop")
    assert (await long).stdout == b"kept\n"


async def test_a_command_that_is_too_long_is_a_result(host: AgentHost) -> None:
    """The sandbox is as it was, and its record has the first characters."""
    one = await create(host)
    for _ in range(4):
        result = await run(host, one, "/x" * 60_000)
        assert result.exit is not None
        assert result.exit.reason == "not-started"
    assert (await run(host, one, "true")).n == 5
    shown = await shown_when(host, one, lambda _sandbox: True)
    assert all(len(word) <= 1024 for program in shown.execs for word in program.argv)


async def test_a_program_is_ended_even_if_it_refuses(host: AgentHost) -> None:
    """As timeouts end it; the sandbox goes on."""
    one = await create(host)
    started = await host.exec_sandbox(
        one,
        ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"),
        request_id=uuid7(),
        cwd="",
        env=None,
        stdin=None,
        interactive=True,
        timeout_s=30,
        max_output=4096,
        detach=True,
    )
    ended = ""
    async for item in host.stream_exec(one, started.n, since=0, follow=True):
        if item.kind == "stdout":
            await host.end_exec(one, started.n, grace_s=0.2)
        elif item.kind == "exit":
            ended = item.data.decode()
    assert '"KILL"' in ended or '"SIGKILL"' in ended
    await host.end_exec(one, started.n, grace_s=0)
    assert (await sh(host, one, "echo still here")).stdout == b"still here\n"


async def test_input_that_is_sent_again_is_written_once(host: AgentHost) -> None:
    """A caller that was killed repeats what it cannot know was taken."""
    one = await create(host)
    started = await host.exec_sandbox(
        one,
        ("python3", "-c", COUNT),
        request_id=uuid7(),
        cwd="",
        env=None,
        stdin=None,
        interactive=True,
        timeout_s=30,
        max_output=4096,
        detach=True,
    )
    for at, data in ((0, b"one"), (0, b"one"), (0, b"one and two"), (11, b" and three")):
        await host.write_exec_stdin(one, started.n, data=data, eof=False, at=at)
    with pytest.raises(ValidationError, match="bytes 21 to 30 are missing"):
        await host.write_exec_stdin(one, started.n, data=b"four", eof=False, at=30)
    await host.write_exec_stdin(one, started.n, data=b"", eof=True)
    output = [item.data async for item in host.stream_exec(one, started.n, since=0, follow=True)]
    assert output[0] == b"21\n"
