"""The standard requirements against a real box: real deaths, real files."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
from support.prefix_box import PrefixBox, default_programs, make_plan

from agentbox.box.readiness.box_requirements import BoxRequirements, make_requirements
from agentbox.box.readiness.evaluator import Evaluator
from agentbox.box.supervision.rpc import ShuttingDown
from agentbox.plan.model import Plan, Probe

DEEP = Probe(
    id="tool",
    feature="core",
    kind="path",
    type="file",
    path="/opt/agentbox/share/tool",
    stage="deep",
)


@dataclass
class Watched:
    box: PrefixBox
    plan: Plan
    evaluator: Evaluator
    standard: BoxRequirements
    shutdowns: list[bool]

    async def until(self, condition: Callable[[], object], seconds: float = 20) -> float:
        """Waits; returns how long it took."""
        begun = time.monotonic()
        while not condition():
            assert time.monotonic() < begun + seconds, (self.evaluator.verdict, self.box.log())
            await asyncio.sleep(0.005)
        return time.monotonic() - begun

    async def until_missing(self, text: str, seconds: float = 20) -> float:
        return await self.until(lambda: text in self.evaluator.verdict.missing, seconds)

    async def until_ready(self, seconds: float = 20) -> float:
        return await self.until(lambda: self.evaluator.verdict.ready, seconds)


@contextlib.asynccontextmanager
async def watched(box: PrefixBox, port: int) -> AsyncIterator[Watched]:
    (box.paths.share / "tool").write_text("x")
    plan = box.install(make_plan(port, default_programs(port), probes=(DEEP,)))
    box.start()
    event = box.wait_for_event("BootstrapStarted")
    shutdowns: list[bool] = []
    standard = make_requirements(
        box.paths,
        plan,
        boot_id=event["boot_id"],
        slots=dict,
        recorded_sentinel=lambda: None,
    )
    standard.draining.subscribe(lambda: shutdowns.append(True))
    evaluator = Evaluator(standard.all)
    task = asyncio.create_task(evaluator.run())
    try:
        yield Watched(box, plan, evaluator, standard, shutdowns)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_ready_has_the_exact_names_and_the_sentinels_hash(box: PrefixBox, port: int) -> None:
    """Ready has the exact names and the sentinel's hash."""
    async with watched(box, port) as w:
        assert w.evaluator.verdict.missing[0] == "bootstrap.done sentinel"
        await w.until_ready(10)
        verdict = w.evaluator.verdict
        assert verdict.requirements == ("bootstrap.done", "adapters:healthy", "paths:accessible")
        assert (
            verdict.evidence["sentinel_sha256"]
            == box.wait_for_event("BootstrapCompleted")["sentinel_sha256"]
        )


@pytest.mark.timed
async def test_a_killed_program_is_named_at_once_and_ready_returns_when_it_has_notified(
    box: PrefixBox, port: int
) -> None:
    """A killed program is named at once and ready returns when it has notified."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        since = w.evaluator.verdict.since
        os.kill(box.supervisor().states()["agent-host"].pid, signal.SIGKILL)
        took = await w.until(
            lambda: any("program:agent-host not running" in m for m in w.evaluator.verdict.missing)
        )
        assert took < 2
        await w.until_ready()
        assert w.evaluator.verdict.since is not None
        assert since is not None
        assert w.evaluator.verdict.since > since


async def test_a_stopped_program_is_named_with_its_state_until_it_is_started(
    box: PrefixBox, port: int
) -> None:
    """A stopped program is named with its state until it is started."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        await asyncio.to_thread(box.supervisor().stop, "agent-host")
        await w.until_missing("program:agent-host not running (state=STOPPED)")
        await asyncio.to_thread(box.supervisor().start, "agent-host")
        await w.until_ready()


async def test_a_program_that_runs_but_has_not_notified_counts_as_starting(
    box: PrefixBox, port: int
) -> None:
    """A program that runs but has not notified counts as starting."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        (box.paths.ready_dir / "agent-host").unlink()
        await w.until_missing("program:agent-host not running (state=STARTING)")


@pytest.mark.parametrize("damage", ["remove", "alter", "replace"])
async def test_a_sentinel_that_is_not_the_one_that_was_written_is_missing(
    box: PrefixBox, port: int, damage: str
) -> None:
    """A sentinel that is not the one that was written is missing."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        path = box.paths.sentinel
        good = path.read_bytes()
        path.chmod(0o600)
        if damage == "remove":
            path.unlink()
        else:
            path.write_bytes(good + b" " if damage == "alter" else b"{}")
        assert await w.until_missing("bootstrap.done sentinel") < 2
        path.write_bytes(good)
        await w.until_ready()


async def test_a_root_that_takes_no_write_is_named_by_its_box_path(
    box: PrefixBox, port: int
) -> None:
    """A root that is not writable is named by its box path."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        away = box.paths.workspace.with_name("away")
        box.paths.workspace.rename(away)
        await w.until_missing("path not accessible: /workspace", 7)
        away.rename(box.paths.workspace)
        await w.until_ready(7)


async def test_a_deep_probe_that_fails_is_named(box: PrefixBox, port: int) -> None:
    """A deep probe that fails is named."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        await w.until(lambda: w.standard.artifacts.results)
        assert w.standard.artifacts.failed == ()
        (box.paths.share / "tool").unlink()
        w.standard.artifacts._due = 0.0
        w.evaluator.wake("artifacts")
        await w.until_missing("artifact:tool failed")


async def test_supervisords_shutdown_is_seen_and_told_once(box: PrefixBox, port: int) -> None:
    """A program that takes long to end keeps supervisord in its shutdown."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        os.kill(box.supervisor().states()["management-api"].pid, signal.SIGSTOP)
        await asyncio.to_thread(box.supervisor().shutdown)
        assert await w.until_missing("draining") < 3
        assert w.shutdowns == [True]


async def test_every_program_is_unknown_without_supervisord(box: PrefixBox, port: int) -> None:
    """Every program is unknown without supervisord."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        box.kill()
        await w.until_missing("program:management-api not running (state=UNKNOWN)")


async def test_the_client_tells_a_shutdown_from_an_absence(box: PrefixBox, port: int) -> None:
    """The client tells a shutdown from an absence."""
    async with watched(box, port) as w:
        await w.until_ready(10)
        assert box.supervisor().state() == "RUNNING"
        os.kill(box.supervisor().states()["management-api"].pid, signal.SIGSTOP)
        box.supervisor().shutdown()
        assert box.supervisor().state() == "SHUTDOWN"
        with pytest.raises(ShuttingDown):
            box.supervisor().states()
