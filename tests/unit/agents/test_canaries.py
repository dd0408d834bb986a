"""Canaries in real sandboxes: working rules are proven, failing ones are named."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.orchestrator_lab import wait_until_async
from support.host_configs import host_config

from agentbox.agents import canaries as runner
from agentbox.agents.canaries import NOT_RUN, WEAK_HOOK, SandboxCanaryRunner
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.store import AgentStore
from agentbox.core.paths import Paths
from agentbox.sandbox.canary.canary import ALLOWED, DENIED, RULES


@pytest_asyncio.fixture
async def host() -> AsyncIterator[HostState]:
    """Below a directory that no agent's sandbox grants; its store is open and its launcher runs."""
    with tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as folder:
        paths = Paths(Path(folder))
        for path in (paths.run, paths.state, paths.logs, paths.workspace, paths.branches):
            path.mkdir(parents=True, exist_ok=True)
        config = host_config(paths, test_hooks=True)
        store = AgentStore(config.state_dir)
        await store.open()
        made = HostState(config, store, "mark")
        yield made
        await made.launcher.close()
        await store.close()


async def test_every_rule_holds(host: HostState) -> None:
    """In the default profile, and nothing of the run remains."""
    assert await SandboxCanaryRunner(host).run_once() == ((), len(RULES))
    assert list(host.config.paths.branches.iterdir()) == []


@pytest.mark.parametrize(
    ("weak", "failed"),
    [("read", ("read",)), ("write", ("write", "attribute")), ("everything", DENIED)],
)
async def test_what_does_not_hold_is_named(
    host: HostState, weak: str, failed: tuple[str, ...]
) -> None:
    """A sandbox that grants one thing too much, and none at all; once fixed, the next run passes."""
    hook = host.config.paths.run / WEAK_HOOK
    hook.write_text(weak)
    found, rules = await SandboxCanaryRunner(host).run_once()
    assert set(failed) <= set(found)
    assert (rules, ALLOWED in found) == (len(RULES), False)
    hook.unlink()
    assert (await SandboxCanaryRunner(host).run_once())[0] == ()


async def test_the_hook_is_for_boxes_with_hooks(host: HostState) -> None:
    """Elsewhere the file means nothing."""
    host.config = replace(host.config, test_hooks=False)
    (host.config.paths.run / WEAK_HOOK).write_text("everything")
    assert (await SandboxCanaryRunner(host).run_once())[0] == ()


async def test_an_agent_that_cannot_work_fails_the_canary(host: HostState) -> None:
    """The allowed write counts too: a workspace that is away ends the start, and that is no pass."""
    host.config.paths.workspace.rmdir()
    assert (await SandboxCanaryRunner(host).run_once())[0] == (NOT_RUN,)


async def test_a_run_that_takes_too_long_is_no_pass(
    host: HostState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves nothing behind."""
    monkeypatch.setattr(runner, "MAX_SECONDS", 0.001)
    assert (await SandboxCanaryRunner(host).run_once())[0] == (NOT_RUN,)
    assert list(host.config.paths.branches.iterdir()) == []


async def _has_records(host: HostState, count: int) -> bool:
    return len(await host.store.read_record(0, 10)) >= count


async def test_reports_and_events_follow_the_runs(host: HostState) -> None:
    """A report a run, with a revision of its own; an event when it falls, and one when it rises."""
    hook = host.config.paths.run / WEAK_HOOK
    hook.write_text("read")
    canaries = SandboxCanaryRunner(host)
    task = asyncio.create_task(canaries.run())
    try:
        async with asyncio.timeout(20):
            while "read" not in canaries.report.failed:
                await canaries.wait_for_report()
            first = canaries.report
            hook.unlink()
            await wait_until_async(lambda: _has_records(host, 2), "two events")
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert first.at is not None
    assert canaries.report.revision > first.revision
    told = [(line["type"], line["data"]["rules"]) for line in await host.store.read_record(0, 10)]
    assert [kind for kind, _ in told] == ["sandbox.failed", "sandbox.proven"]
    assert told[1][1] == len(RULES)
