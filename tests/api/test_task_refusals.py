"""Tasks whose store refuses the call that closes them, in this process: real slots, a real
agent-host, one failing call."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from helpers import sh
from support.agent_host import AgentHostBox
from support.api_box import SLOTS, api_plan

from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots, create_slots
from agentbox.api.tasks.runner import TaskRunner
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.contracts.tasks import TaskBody
from agentbox.core.slot_errors import (
    AdapterError,
    PermissionDenied,
    QuotaExceeded,
    SlotUnavailable,
    ValidationError,
)

DENIED = PermissionDenied("cannot close it", scope="beads:write")
FULL = QuotaExceeded("no room", limit="max_size", observed=2, cap=1, config_path="x")
AWAY = SlotUnavailable("away", slot="beads", impl="test", since=None)
TOO_LONG = ValidationError(
    "cannot take it", errors=[{"pointer": "/result", "detail": "is too long"}]
)


class Refusing:
    """Beads whose `close_bead` raises what `refuse` returns for a call (its arguments), if it
    returns something."""

    def __init__(self, beads: Any) -> None:
        self._beads = beads
        self.refuse: Callable[[str, dict[str, Any]], AdapterError | None] = lambda _id, _arguments: (
            None
        )
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._beads, name)

    async def close_bead(self, bead_id: str, **arguments: Any) -> Any:
        self.calls.append(bead_id)
        if (error := self.refuse(bead_id, arguments)) is not None:
            raise error
        return await self._beads.close_bead(bead_id, **arguments)


@dataclass
class Lab:
    """A runner over slots below a directory."""

    host: AgentHostBox
    container: Slots
    beads: Refusing
    tasks: TaskRunner

    async def submit(self, script: str = "exit 0") -> str:
        return (
            await self.tasks.submit(TaskBody(spec=AgentSpec.from_wire(sh(script))), "test")
        ).task_id

    async def state(self, task_id: str) -> str:
        return (await self.tasks.show(task_id)).state

    async def final(self, task_id: str) -> Any:
        async with asyncio.timeout(15):
            while not (task := await self.tasks.show(task_id)).final:
                await asyncio.sleep(0.01)
        return task

    @property
    def entries(self) -> list[Path]:
        return sorted(self.host.paths.task_spool.glob("*.json"))


@asynccontextmanager
async def running(host: AgentHostBox) -> AsyncIterator[Lab]:
    beads = SLOTS["beads"].__class__(
        use="local-sqlite", required=False, options={"lease_seconds": 5}
    )
    plan = api_plan(slots={**SLOTS, "beads": beads})
    container = create_slots(plan, host.paths, Deps(metrics=Metrics()))
    faulty = Refusing(container.beads)
    container.beads = faulty  # type: ignore[assignment]
    tasks = TaskRunner(plan, host.paths, container)
    await container.start()
    tasks.start()
    try:
        yield Lab(host, container, faulty, tasks)
    finally:
        await tasks.stop()
        await container.stop()


@pytest.fixture
def host() -> Iterator[AgentHostBox]:
    with tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as folder:
        made = AgentHostBox(Path(folder))
        made.start()
        yield made
        made.stop()


@pytest.fixture
async def lab(host: AgentHostBox) -> AsyncIterator[Lab]:
    async with running(host) as made:
        yield made


async def test_a_refusal_for_good_is_asked_for_once(lab: Lab) -> None:
    """The bead cannot be closed: past its lease the run is not started again; the entry waits for
    the next start, and later tasks run."""
    lab.beads.refuse = lambda _id, _arguments: DENIED
    task = await lab.submit()
    await wait_until(lambda: lab.beads.calls != [], "the close was tried")
    async with asyncio.timeout(20):
        while (await lab.container.beads.show(task)).status == "claimed":
            await asyncio.sleep(0.1)
    lab.beads.refuse = lambda bead_id, _arguments: DENIED if bead_id == task else None
    assert (await lab.final(await lab.submit())).state == "succeeded"
    assert lab.beads.calls.count(task) == 1
    await wait_until(lambda: len(lab.entries) == 1, "only its entry waits")


async def test_the_next_start_closes_what_was_refused(host: AgentHostBox) -> None:
    """For instance with another token: the same agent's exit is recorded in the bead, and nothing
    ran twice."""
    async with running(host) as lab:
        lab.beads.refuse = lambda _id, _arguments: DENIED
        task = await lab.submit("exit 3")
        await wait_until(lambda: lab.beads.calls != [], "the close was tried")
    async with running(host) as lab:
        found = await lab.final(task)
        assert (found.state, found.exit["code"]) == ("failed", 3)
        assert len((await lab.container.orchestrator.list()).items) == 1
        await wait_until(lambda: lab.entries == [], "the spool is empty")


async def test_a_result_that_is_refused_is_left_out(lab: Lab) -> None:
    """The bead closes with the outcome, and its note explains why there is no more."""
    lab.beads.refuse = lambda _id, arguments: TOO_LONG if arguments["result"] is not None else None
    task = await lab.final(await lab.submit())
    assert (task.state, task.note, task.exit) == ("succeeded", "its result was refused", None)
    await wait_until(lambda: lab.entries == [], "the spool is empty")


async def test_a_full_store_is_waited_for(lab: Lab) -> None:
    """The end of a run is not lost for lack of space."""
    lab.beads.refuse = lambda _id, _arguments: FULL if len(lab.beads.calls) < 3 else None
    task = await lab.final(await lab.submit("exit 4"))
    assert (task.state, task.exit["code"], task.attempts) == ("failed", 4, 1)
    assert lab.beads.calls == [task.task_id] * 3


async def test_a_bead_that_nobody_may_close_holds_up_no_task(lab: Lab) -> None:
    """A bead under the tasks' epic without a spec, first in the queue, whose rejection is refused
    by the store."""
    done = await lab.final(await lab.submit())
    epic = (await lab.container.beads.show(done.task_id)).parent_id
    assert epic is not None
    foreign, _ = await lab.container.beads.create_child(
        epic, BeadSpec(title="no task", creator="x", priority=0)
    )
    lab.beads.refuse = lambda bead_id, _arguments: DENIED if bead_id == foreign.id else None
    tasks = [await lab.submit() for _ in range(3)]
    assert [(await lab.final(task)).state for task in tasks] == ["succeeded"] * 3
    assert lab.beads.calls.count(foreign.id) == 1


@pytest.mark.parametrize("ref", ["../../state", "0190a5b2-0000-7000-8000-000000000000", 7, None])
async def test_a_bead_may_name_any_ref(lab: Lab, ref: Any) -> None:
    """A ref that is no name of an entry, or of none: the bead is closed as no task, and cancelling one is no bug."""
    done = await lab.final(await lab.submit())
    epic = (await lab.container.beads.show(done.task_id)).parent_id
    assert epic is not None
    spec = BeadSpec(title="x", creator="x", data={"task": {"ref": ref}})
    foreign, _ = await lab.container.beads.create_child(epic, spec)
    assert (await lab.tasks.cancel(foreign.id, "test")).state in ("cancelled", "failed")


async def test_cancelling_a_bead_spares_the_entry_of_another(lab: Lab) -> None:
    """A bead with another task's ref does not affect that task."""
    running_task = await lab.submit("sleep 2; exit 0")
    bead = await lab.container.beads.show(running_task)
    assert bead.parent_id is not None
    spec = BeadSpec(title="x", creator="x", data=dict(bead.data), not_before=_in_an_hour())
    foreign, _ = await lab.container.beads.create_child(bead.parent_id, spec)
    (entry,) = lab.entries
    assert (await lab.tasks.cancel(foreign.id, "test")).state == "cancelled"
    assert lab.entries == [entry]
    assert (await lab.final(running_task)).state == "succeeded"


async def test_a_drain_leaves_what_cannot_be_closed(host: AgentHostBox) -> None:
    """The store is unavailable when the box goes down: the agent is ended, the drain does not wait,
    the next start closes the bead."""
    async with running(host) as lab:
        task = await lab.submit("sleep 300")
        async with asyncio.timeout(10):
            while not (await lab.tasks.show(task)).agent_id:
                await asyncio.sleep(0.01)
        lab.beads.refuse = lambda _id, _arguments: AWAY
        async with asyncio.timeout(4):
            await lab.tasks.drain(1)
        assert (lab.tasks.running, lab.tasks.unfinished) == (0, 1)
        (info,) = (await lab.container.orchestrator.list()).items
        assert info.exit is not None
        assert len(lab.entries) == 1
    async with running(host) as lab:
        found = await lab.final(task)
        assert (found.state, found.exit["reason"]) == ("failed", "terminated")


async def test_a_cancel_while_the_entry_is_removed_leaves_none(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has ended, its entry is being removed, and a cancel arrives: it stays done, and the
    spool stays empty."""
    spool = lab.tasks._spool
    asked, go_on, remove = asyncio.Event(), asyncio.Event(), spool.remove

    async def slow(ref: str) -> None:
        asked.set()
        await go_on.wait()
        await remove(ref)

    monkeypatch.setattr(spool, "remove", slow)
    task = await lab.submit()
    await asyncio.wait_for(asked.wait(), 10)
    cancelling = asyncio.create_task(lab.tasks.cancel(task, "test"))
    await asyncio.sleep(0)
    go_on.set()
    assert (await cancelling).state == "succeeded"
    assert lab.entries == []


async def test_entries_that_no_bead_names_are_removed_at_the_start(host: AgentHostBox) -> None:
    """What a crash left between saving an entry and queueing its bead is removed; a task that waits
    for its time stays and runs."""
    async with running(host) as lab:
        body = TaskBody(spec=AgentSpec.from_wire(sh("exit 0")), not_before=_in_an_hour())
        waiting = (await lab.tasks.submit(body, "test")).task_id
        lab.beads.create_child = _killed  # type: ignore[attr-defined]
        (kept,) = lab.entries
        with pytest.raises(asyncio.CancelledError):
            await lab.submit()
        assert len(lab.entries) == 2
    async with running(host) as lab:
        await wait_until(lambda: lab.entries == [kept], "the orphan is gone")
        assert await lab.state(waiting) == "queued"
        assert (await lab.final(await lab.submit())).state == "succeeded"


async def _killed(*_: Any) -> Any:
    """As a process that is killed in the middle: nothing cleans up."""
    raise asyncio.CancelledError


def _in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)
