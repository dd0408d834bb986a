"""The evaluator: falls at the first failure, rises after one complete good pass, never waits in a request."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from agentbox.box.readiness.evaluator import STALLED, Evaluator, ReadinessVerdict
from agentbox.box.readiness.requirement import Requirement
from agentbox.box.readiness.requirements.adapters import AdaptersRequirement
from agentbox.core.background.daemon_threads import DaemonThreadRunner


class Switch(Requirement):
    """Fails while `broken`; counts its checks; may hang."""

    def __init__(
        self, family: str, *, broken: bool = False, period: float = 5.0, title: str = ""
    ) -> None:
        self.family = family
        self.broken = broken
        self.period = period
        self.title = title
        self.deadline = 0.2
        self.checks = 0
        self.hangs = False

    async def check(self) -> tuple[str, ...]:
        self.checks += 1
        if self.hangs:
            await asyncio.Event().wait()
        return (f"{self.family} broken",) if self.broken else ()

    def missing_on_timeout(self) -> tuple[str, ...]:
        return (f"{self.family} late",)


Changes = list[tuple[bool, bool]]


@contextlib.asynccontextmanager
async def running(
    *requirements: Requirement, scale: float = 1.0
) -> AsyncIterator[tuple[Evaluator, Changes]]:
    changes: Changes = []
    evaluator = Evaluator(requirements, clock_scale=scale)
    evaluator.subscribe(lambda old, new: changes.append((old.ready, new.ready)))
    task = asyncio.create_task(evaluator.run())
    try:
        yield evaluator, changes
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.001)


async def test_before_the_first_check_the_sentinel_is_missing() -> None:
    """Before the first check the sentinel is missing."""
    evaluator = Evaluator([Switch("a", title="a:good"), Switch("b")])
    verdict = evaluator.verdict
    assert (verdict.ready, verdict.since, verdict.missing) == (
        False,
        None,
        ("bootstrap.done sentinel",),
    )
    assert verdict.requirements == ("a:good",)


async def test_it_rises_once_everything_passed() -> None:
    """It rises once everything passed."""
    async with running(Switch("a"), Switch("b")) as (evaluator, changes):
        await until(lambda: evaluator.verdict.ready)
        assert evaluator.verdict.since is not None
        assert evaluator.verdict.missing == ()
        assert changes[-1] == (False, True)
        assert evaluator.met() == {"a": True, "b": True}


async def test_one_that_never_answers_keeps_it_down_by_its_own_name() -> None:
    """One that never answers keeps it down by its own name."""
    slow = Switch("b")
    slow.hangs = True
    async with running(Switch("a"), slow) as (evaluator, _changes):
        await until(lambda: evaluator.verdict.missing == ("b late",))
        assert not evaluator.verdict.ready


async def test_it_falls_with_the_first_failure_while_others_still_hang() -> None:
    """It falls with the first failure while others still hang."""
    a, b = Switch("a"), Switch("b")
    async with running(a, b) as (evaluator, _changes):
        await until(lambda: evaluator.verdict.ready)
        b.hangs, b.deadline = True, 60
        evaluator.wake("b")
        await until(lambda: b.checks == 2)
        a.broken = True
        evaluator.wake("a")
        await until(lambda: not evaluator.verdict.ready)
        assert evaluator.verdict.missing == ("a broken",)


async def test_after_a_failure_every_check_must_pass_again_before_it_rises() -> None:
    """`b` was good all the time, yet it is checked once more: the good pass is a complete one."""
    a, b = Switch("a"), Switch("b", period=3600)
    async with running(a, b) as (evaluator, changes):
        await until(lambda: evaluator.verdict.ready)
        first = evaluator.verdict.since
        a.broken = True
        evaluator.wake("a")
        await until(lambda: not evaluator.verdict.ready)
        before = b.checks
        a.broken = False
        evaluator.wake("a")
        await until(lambda: evaluator.verdict.ready)
        assert b.checks == before + 1
        assert evaluator.verdict.since is not None
        assert first is not None
        assert evaluator.verdict.since >= first
        assert changes == [(False, True), (True, False), (False, True)]


async def test_missing_is_in_the_order_of_the_requirements() -> None:
    """Missing is in the order of the requirements."""
    async with running(Switch("z", broken=True), Switch("a", broken=True)) as (evaluator, _changes):
        await until(lambda: len(evaluator.verdict.missing) == 2)
        assert evaluator.verdict.missing == ("z broken", "a broken")


async def test_a_period_is_kept_without_events_and_scaled_by_the_hook() -> None:
    """A period is kept without events and scaled by the hook."""
    a = Switch("a", period=10)
    async with running(a, scale=1000):
        await until(lambda: a.checks >= 5)


async def test_draining_is_at_once_and_for_good() -> None:
    """Draining is at once and permanent."""
    a = Switch("a")
    async with running(a) as (evaluator, _changes):
        await until(lambda: evaluator.verdict.ready)
        evaluator.drain()
        assert evaluator.verdict.missing == ("draining",)
        checks = a.checks
        evaluator.wake("a")
        await until(lambda: a.checks > checks)
        assert not evaluator.verdict.ready


async def test_an_evaluator_that_does_not_come_round_is_named() -> None:
    """An evaluator that makes no progress is named."""
    now = 0.0
    evaluator = Evaluator([Switch("a")], monotonic=lambda: now)
    task = asyncio.create_task(evaluator.run())
    await until(lambda: evaluator.verdict.ready)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    now = 10.5
    verdict: ReadinessVerdict = evaluator.verdict
    assert (verdict.ready, verdict.since, verdict.missing) == (False, None, (STALLED,))


async def test_a_hung_call_is_never_begun_twice() -> None:
    """A hung call is never started twice."""
    import threading

    release, begun = threading.Event(), []

    def hang() -> None:
        begun.append(1)
        release.wait()

    call: DaemonThreadRunner[None] = DaemonThreadRunner("hangs")
    first = asyncio.create_task(call(hang))
    await until(lambda: begun)
    try:
        await call(hang)
    except TimeoutError:
        assert begun == [1]
    else:
        raise AssertionError("a second call was begun")
    finally:
        release.set()
    await first
    await call(lambda: None)


class Slot:
    def __init__(self, state: str, *, required: bool) -> None:
        self.state = state
        self.required = required


async def test_a_required_slot_is_missing_and_another_one_degraded() -> None:
    """A required slot is missing and another one degraded."""
    slots = {
        "beads": Slot("down", required=False),
        "events": Slot("connecting", required=True),
        "memory": Slot("off", required=False),
        "orchestrator": Slot("down", required=True),
        "pods": Slot("ok", required=True),
    }
    requirement = AdaptersRequirement(lambda: slots)
    assert await requirement.check() == (
        "adapter:events not healthy (status=connecting)",
        "adapter:orchestrator not healthy (status=down)",
    )
    assert requirement.degraded() == ("beads",)
