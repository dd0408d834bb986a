"""Sandboxes on a real agent-host, over its RPC."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.agent_host import AgentHostBox
from support.host_agents import open_orchestrator
from support.host_sandboxes import create, run, sh, shown_when

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime import context
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.orchestrator import Limits
from agentbox.contracts.sandboxes import NewSandbox
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    ExecLimit,
    InvalidTransition,
    NotFound,
    QuotaExceeded,
    SandboxOver,
    ValidationError,
)
from agentbox.sandbox.launcher import tree

MANIFEST = """
[sandboxes]
max = 2
max_exec = 3
"""

# It logs each request to stderr.
SERVER = """
import http.server, os, pathlib
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
pathlib.Path(os.environ["HOME"], "port").write_text(str(server.server_port))
server.serve_forever()
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"), manifest=MANIFEST)
    made.start()
    yield made
    made.stop()


async def test_programs_share_branch_home_and_token_and_the_end_is_a_review(
    host: AgentHost, box: AgentHostBox
) -> None:
    """What one leaves the next one finds; the operator decides about all of it."""
    (box.paths.workspace / "old").write_text("1\n")
    one = await create(host, env={"LANG": "de"})
    first = await sh(
        host, one, "cat old; echo 2 > new; touch $HOME/kept; echo $AGENTBOX_TOKEN $LANG $A",
        env={"A": "a", "AGENTBOX_TOKEN": "forged"}
    )  # fmt: skip
    assert first.exit is not None
    assert (first.n, first.exit.code, first.exit.reason) == (
        1,
        0,
        "exit",
    )
    old, secret = first.stdout.decode().split("\n", 1)
    token, *rest = secret.split()
    assert (old, rest, len(token) > 30) == ("1", ["de", "a"], True)
    second = await sh(host, one, "cat new; ls $HOME; echo $AGENTBOX_TOKEN; echo err >&2; exit 3")
    assert second.stdout.decode().split() == ["2", "kept", token]
    assert second.exit is not None
    assert (second.n, second.exit.code, second.stderr) == (2, 3, b"err\n")
    shown = await host.get_sandbox(one)
    assert [(run.n, run.exit and run.exit.code) for run in shown.execs] == [(1, 0), (2, 3)]
    assert (shown.state, shown.branch["state"]) == ("running", "open")
    ended = await host.end_sandbox(one, grace_s=1)
    assert (ended.state, ended.exit and ended.exit.reason) == ("exited", "terminated")
    (review,) = await host.list_reviews()
    assert (review.agent_id, review.added, ended.branch["state"]) == (one, 1, "sealed")
    assert not (box.paths.workspace / "new").exists()
    with pytest.raises(SandboxOver):
        await run(host, one, "true")


async def test_a_sandbox_is_an_agent_of_its_kind(
    host: AgentHost, adapter: LocalProcessOrchestrator
) -> None:
    """Listed, shown and ended as one; it has no process to be signalled."""
    one = await create(host)
    info = await adapter.get(one)
    assert (info.kind, info.state, info.pid, info.spec.argv) == ("sandbox", "running", None, ())
    with pytest.raises(InvalidTransition):
        await adapter.signal(info.handle, "TERM")
    await run(host, one, "true")
    assert (await adapter.get(one)).isolation["syscalls"]["state"] == "enforced"
    assert (await adapter.terminate(info.handle, grace_s=0)).reason == "terminated"
    with pytest.raises(NotFound):
        await host.get_sandbox(uuid7())


async def test_a_program_that_fails_is_a_result(host: AgentHost) -> None:
    """A signal, a missing program, a directory outside, a timeout."""
    one = await create(host)
    killed = await sh(host, one, "kill -9 $$")
    missing = await run(host, one, "no-such-program")
    outside = await run(host, one, "true", cwd="/etc")
    late = await sh(
        host, one, "trap 'echo bye; exit 5' TERM; while :; do sleep 0.1; done", timeout_s=0.3
    )
    ends = [result.exit for result in (killed, missing, outside, late)]
    assert [end and (end.code, end.signal, end.reason) for end in ends] == [
        (None, "SIGKILL", "signal"),
        (127, None, "not-started"),
        (None, None, "not-started"),
        (5, None, "timeout"),
    ]
    assert ends[1] is not None
    assert "no-such-program: No such file" in ends[1].detail
    assert late.stdout == b"bye\n"


@pytest.mark.limit("max_sandboxes")
@pytest.mark.limit("max_exec")
async def test_bounds(host: AgentHost) -> None:
    """Sandboxes, programs at a time, and arguments."""
    one, _ = await create(host), await create(host)
    with pytest.raises(QuotaExceeded, match=r"sandboxes\.max is 2"):
        await create(host)
    running = [await run(host, one, "sleep", "60", detach=True) for _ in range(3)]
    assert [result.exit for result in running] == [None] * 3
    with pytest.raises(ExecLimit):
        await run(host, one, "true")
    await host.signal_exec(one, running[0].n, "TERM")
    await shown_when(host, one, lambda sandbox: sandbox.execs[0].exit is not None)
    assert (await run(host, one, "true")).n == 4
    for options in ({"timeout_s": 0.0}, {"max_output": -1}, {"env": {"A=": ""}}, {"cwd": "\0"}):
        with pytest.raises(ValidationError):
            await run(host, one, "true", **options)
    with pytest.raises(ValidationError):
        await run(host, one)
    with pytest.raises(ValidationError):
        await create(host, ttl_s=5.0)
    with pytest.raises(ValidationError):
        await create(host, limits=Limits(wall_seconds=60))


async def test_a_repeated_request_is_one_program(host: AgentHost) -> None:
    """Also after its end, and for a sandbox."""
    one, key = await create(host), uuid7()
    both = await asyncio.gather(
        *(sh(host, one, "echo $$; sleep 0.2", request_id=key) for _ in range(2))
    )
    again = await sh(host, one, "echo other", request_id=key)
    assert both[0] == both[1] == again
    spec, key = NewSandbox(name="twice"), uuid7()
    first = await host.create_sandbox(spec, request_id=key)
    assert (await host.create_sandbox(spec, request_id=key)).sandbox_id == first.sandbox_id


async def test_a_request_id_is_the_caller_s_own(host: AgentHost) -> None:
    """With the same one another caller gets neither the program nor the sandbox of the first."""
    one, key, spec = await create(host), uuid7(), NewSandbox(name="twice")
    mine = await sh(host, one, "echo mine", request_id=key)
    sandbox = await host.create_sandbox(spec, request_id=key)
    with context.as_caller(context.CallContext(principal="token:other")):
        theirs = await sh(host, one, "echo theirs", request_id=key)
        again = await sh(host, one, "echo again", request_id=key)
        with pytest.raises(QuotaExceeded):  # it would be a third one
            await host.create_sandbox(spec, request_id=key)
    assert (mine.stdout, theirs.stdout, theirs.n) == (b"mine\n", b"theirs\n", mine.n + 1)
    assert again == theirs
    await host.end_sandbox(sandbox.sandbox_id, grace_s=0)


async def test_output_is_read_on_by_cursor_after_the_caller_died(
    host: AgentHost, box: AgentHostBox
) -> None:
    """A connection that is lost ends nothing and loses no byte."""
    one = await create(host)
    async with open_orchestrator(box) as other:
        with context.as_caller(context.CORE):
            client = agent_host_client(lambda: other)
            lost = asyncio.create_task(
                sh(client, one, "for i in 1 2 3; do echo $i; sleep 0.2; done")
            )
            await shown_when(host, one, lambda sandbox: sandbox.execs != ())
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    items = [item async for item in host.stream_exec(one, 1, since=0, follow=True)]
    assert b"".join(item.data for item in items if item.kind == "stdout") == b"1\n2\n3\n"
    assert (items[-1].kind, {item.generation for item in items}) == ("exit", {1})
    rest = [item async for item in host.stream_exec(one, 1, since=items[0].cursor, follow=False)]
    assert rest == items[1:]


async def test_what_a_program_leaves_behind_runs_on(host: AgentHost) -> None:
    """A server that it started in the background is reached by the next, which is neither slowed
    nor ended by the closed result; it ends with the sandbox."""
    one = await create(host)
    started = await sh(
        host, one, f"python3 -c '{SERVER}' & until test -s $HOME/port; do sleep 0.02; done"
    )
    assert started.exit is not None
    assert started.exit.code == 0
    fetch = "import os, pathlib, urllib.request as u; print(u.urlopen('http://127.0.0.1:' + pathlib.Path(os.environ['HOME'], 'port').read_text()).status)"
    for _ in range(2):
        got = await run(host, one, "python3", "-c", fetch)
        assert got.stdout == b"200\n", got.stderr
    await host.end_sandbox(one, grace_s=1)


async def recorded(host: AgentHost, last: str) -> list[tuple[str, str | None]]:
    """Events of sandboxes, with the reason of an end, once the last is of that type. None of them
    is acknowledged."""
    found: list[tuple[str, str | None]] = []
    async with asyncio.timeout(10):
        while not found or found[-1][0] != last:
            await asyncio.sleep(0.02)
            found = [
                (event.type, event.data.get("reason"))
                for event in await host.read_record(0, wait_s=5)
                if event.type.startswith("sandbox.")
            ]
    return found


async def test_a_killed_host_loses_the_sandbox_as_it_loses_agents(tmp_path: Path) -> None:
    """No process is left; the branch is sealed; calls say that it is over."""
    box = AgentHostBox(tmp_path)
    box.start()
    try:
        async with open_orchestrator(box) as adapter:
            with context.as_caller(context.CORE):
                host = agent_host_client(lambda: adapter)
                one = await create(host)
                await sh(host, one, "echo x > made; setsid sleep 1000 &")
                running = await run(host, one, "sleep", "1000", detach=True)
                pid = (await host.get_sandbox(one)).execs[-1].pid
                await recorded(host, "sandbox.exec")
        assert pid
        assert running.exit is None
        box.kill()
        box.start()
        assert tree.read_process(pid) is None
        async with open_orchestrator(box) as adapter:
            with context.as_caller(context.CORE):
                host = agent_host_client(lambda: adapter)
                found = await shown_when(host, one, lambda sandbox: sandbox.state == "lost")
                assert [(run.argv[0], run.exit and run.exit.reason) for run in found.execs] == [
                    ("sh", "exit"),
                    ("sleep", "sandbox-over"),
                ]
                (review,) = await host.list_reviews()
                assert (review.agent_id, review.added) == (one, 1)
                with pytest.raises(SandboxOver):
                    await run(host, one, "true")
                assert await recorded(host, "sandbox.ended") == [
                    ("sandbox.created", None),
                    ("sandbox.exec", None),
                    ("sandbox.ended", "lost"),
                ]
    finally:
        box.stop()
