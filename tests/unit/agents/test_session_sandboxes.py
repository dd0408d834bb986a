"""Sandboxes of sessions on a real agent-host: one of a table, that outlives its processes."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest
from support.agent_host import AgentHostBox
from support.host_sandboxes import create, put, run, sh, shown_when
from support.session_sandboxes import MANIFEST, open_sessions, start, wait_for_file

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    InvalidTransition,
    QuotaExceeded,
    SandboxOver,
    SpawnError,
)
from agentbox.plan.names import SESSION_HOST


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(
        tmp_path_factory.mktemp("box"), manifest=MANIFEST, programs=(SESSION_HOST,), scale=50
    )
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def sessions(
    box: AgentHostBox, adapter: LocalProcessOrchestrator
) -> AsyncIterator[AgentHost]:
    """After a test none of its sandboxes is left, and no review waits."""
    async with open_sessions(box) as opened:
        yield opened
        for one in (await opened.list_sandboxes(limit=100, cursor=None)).items:
            await opened.end_sandbox(one.sandbox_id, grace_s=0)
        for review in await opened.list_reviews():
            await opened.discard_review(review.agent_id, by="test")


async def test_it_is_of_its_table_and_without_a_ttl(
    sessions: AgentHost, adapter: LocalProcessOrchestrator
) -> None:
    """Policy and limits are those of the table, and the program is not started."""
    one = await start(sessions)
    info, shown = await adapter.get(one), await sessions.get_sandbox(one)
    assert (info.kind, info.pid, info.spec.agent, info.spec.profile) == (
        "session", None, "coder", "worker",
    )  # fmt: skip
    assert info.limits["pids"]["cap"] == 40
    assert (shown.state, shown.expires_at, shown.execs) == ("running", None, ())


async def test_suspended_and_resumed_it_is_the_same(
    sessions: AgentHost, adapter: LocalProcessOrchestrator
) -> None:
    """Branch, HOME, TMPDIR and what its programs wrote; none of its processes is left in between."""
    one = await start(sessions)
    first = await sh(
        sessions, one, "echo 1 > new; echo 2 > $HOME/kept; echo 3 > $TMPDIR/t; echo out"
    )
    await run(sessions, one, "sleep", "1000", detach=True)
    suspended = await sessions.suspend_sandbox(one, grace_s=0)
    assert (suspended.state, suspended.branch["state"]) == ("suspended", "open")
    assert [program.exit is not None for program in suspended.execs] == [True, True]
    assert (await adapter.get(one)).state == "suspended"
    with pytest.raises(SandboxOver):
        await run(sessions, one, "true")
    assert await sessions.list_reviews() == ()
    resumed = await sessions.resume_sandbox(one)
    assert resumed.state == "running"
    assert (await adapter.get(one)).handle.generation == 2
    found = await sh(sessions, one, "cat new $HOME/kept $TMPDIR/t")
    assert (found.stdout, found.n) == (b"1\n2\n3\n", 3)
    old = [item async for item in sessions.stream_exec(one, first.n, since=0, follow=True)]
    assert b"".join(item.data for item in old if item.kind == "stdout") == b"out\n"


async def test_both_calls_can_be_repeated(sessions: AgentHost) -> None:
    """Also at the same time."""
    one = await start(sessions)
    calls = (
        partial(sessions.suspend_sandbox, one, grace_s=0),
        partial(sessions.resume_sandbox, one),
    )
    states = [
        {shown.state for shown in await asyncio.gather(call(), call(), call())} for call in calls
    ]
    assert states == [{"suspended"}, {"running"}]
    assert (await run(sessions, one, "true")).exit is not None


async def test_the_end_of_a_suspended_one_is_a_review(sessions: AgentHost) -> None:
    """And the end of the sandbox."""
    one = await start(sessions)
    await put(sessions, one, "workspace/new", b"1\n")
    await sessions.suspend_sandbox(one, grace_s=0)
    ended = await sessions.end_sandbox(one, grace_s=0)
    assert (ended.state, ended.exit and ended.exit.reason) == ("exited", "terminated")
    (review,) = await sessions.list_reviews()
    assert (review.agent_id, review.added) == (one, 1)
    for call in (sessions.resume_sandbox(one), sessions.suspend_sandbox(one, grace_s=0)):
        with pytest.raises(SandboxOver):
            await call


async def test_a_suspended_one_takes_nobodys_place(sessions: AgentHost) -> None:
    """`sandboxes.max` is 2, and the table's max_instances 1; a resumed one needs room again."""
    first, second = await start(sessions), await start(sessions)
    with pytest.raises(QuotaExceeded):
        await start(sessions)
    await sessions.suspend_sandbox(first, grace_s=0)
    await start(sessions)
    with pytest.raises(QuotaExceeded):
        await sessions.resume_sandbox(first)
    assert (await sessions.get_sandbox(first)).state == "suspended"
    await sessions.end_sandbox(second, grace_s=0)
    assert (await sessions.resume_sandbox(first)).state == "running"


async def test_what_was_revoked_stays_revoked(
    sessions: AgentHost, adapter: LocalProcessOrchestrator
) -> None:
    """A right of the kernel ends the processes: the sandbox is suspended, and comes back without."""
    one = await start(sessions)
    grants = (await adapter.get(one)).policy["grants"]
    tool = next(row for row in grants if row["scope"] == "tool" and row["patterns"] == ["pod/*"])
    write = next(
        row
        for row in grants
        if row["scope"] == "fs" and "write" in row["operations"] and row["mode"] == "allow"
        and any(pattern.startswith("$WORKSPACE") for pattern in row["patterns"])
    )  # fmt: skip
    assert (await sh(sessions, one, "echo 1 > before")).exit.code == 0  # type: ignore[union-attr]
    for row in (tool, write):
        await adapter.revoke(one, row["grant_id"])
    await shown_when(sessions, one, lambda shown: shown.state == "suspended")
    await sessions.resume_sandbox(one)
    states = {
        (row["scope"], *row["patterns"]): row["state"]
        for row in (await adapter.get(one)).policy["grants"]
    }
    assert {states[row["scope"], *row["patterns"]] for row in (tool, write)} == {"revoked"}
    refused = await sh(sessions, one, "echo 1 > after")
    assert refused.exit is not None
    assert refused.exit.code != 0


@pytest.mark.limit("session_output")
async def test_the_agent_waits_for_its_reader(sessions: AgentHost, box: AgentHostBox) -> None:
    """Without one it is blocked, and a reader that left and comes back has missed nothing."""
    big = box.paths.workspace / "big"
    big.write_bytes(content := os.urandom(size := 12 << 20))
    one = await start(sessions)
    big.unlink()
    program = await sh(
        sessions, one, "cat big; echo end > done", interactive=True, detach=True, timeout_s=1000.0
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await wait_for_file(sessions, one, "workspace/done")
    found, since = bytearray(), 0
    while len(found) < size:
        async with open_sessions(box) as reader:  # each reads 3 MiB and is gone
            until = min(len(found) + (3 << 20), size)
            async for item in reader.stream_exec(one, program.n, since=since, follow=True):
                if item.kind == "stdout":
                    found += item.data
                    since = item.cursor
                if len(found) >= until:
                    break
    assert bytes(found) == content
    shown = await shown_when(sessions, one, lambda shown: shown.execs[0].exit is not None)
    assert shown.execs[0].exit is not None
    assert shown.execs[0].exit.code == 0


async def test_only_a_table_that_speaks_acp_has_sessions(
    sessions: AgentHost, adapter: LocalProcessOrchestrator
) -> None:
    """And such a table runs in sessions only."""
    with pytest.raises(SpawnError, match="is not"):
        await start(sessions, "lines")
    with pytest.raises(SpawnError, match="runs in sessions"):
        await adapter.spawn(AgentSpec(name="coder", agent="coder"), request_id=uuid7())
    listed = (await sessions.list_sandboxes(limit=100, cursor=None)).items
    assert {one.state for one in listed} <= {"exited"}


async def test_no_other_sandbox_is_suspended(sessions: AgentHost) -> None:
    """One of the API has a TTL, and its end is a review."""
    one = await create(sessions)
    for call in (sessions.suspend_sandbox(one, grace_s=0), sessions.resume_sandbox(one)):
        with pytest.raises(InvalidTransition):
            await call
