"""Backups that fail, of a schedule and by hand: the next one is made, and nothing hangs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from prometheus_client import CollectorRegistry
from support import tables
from support.cut_slots import open_slots, plan_of_slots

from agentbox.api.backups import program
from agentbox.api.backups.maker import BackupMaker
from agentbox.api.backups.schedule import _look, due_at, run_schedule
from agentbox.api.backups.setup import make_backups
from agentbox.api.plan_source import PlanSource
from agentbox.core import clock
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import BackupUnusable


@asynccontextmanager
async def made(prefix: Path, **changes: Any) -> AsyncIterator[tuple[BackupMaker, PlanSource]]:
    """A maker of an open box whose schedule is overdue."""
    values = {"encrypt": "none", "min_free": 1 << 20, "schedule": "0 3 * * *", **changes}
    plans = PlanSource(replace(plan_of_slots(), backup=tables.backup(**values)))
    paths = Paths(prefix)
    paths.state.mkdir(parents=True)
    async with open_slots(prefix) as slots:
        maker = make_backups(paths, plans, slots, CollectorRegistry(), None).maker
        set_overdue(maker)
        try:
            yield maker, plans
        finally:
            await maker.stop()


def set_overdue(maker: BackupMaker) -> None:
    """The last attempt was two days ago."""
    maker.record._data["attempted_at"] = clock.to_wire(clock.now() - timedelta(days=2))


def is_overdue(maker: BackupMaker) -> bool:
    """Whether no attempt was recorded since."""
    attempted_at = maker.record.attempted_at
    assert attempted_at is not None
    return attempted_at < clock.now() - timedelta(days=1)


def state_of(maker: BackupMaker) -> str:
    """Of the last backup."""
    assert maker.current is not None
    return maker.current.state


async def make_by_hand(maker: BackupMaker) -> str:
    """Its state when it has ended."""
    await maker.create("", "urn:test")
    await asyncio.wait_for(maker.wait(), 60)
    return state_of(maker)


def break_record(paths: Paths) -> Callable[[], object]:
    """The time of the attempt cannot be written."""
    paths.backup_record.mkdir()
    return paths.backup_record.rmdir


def break_folder(paths: Paths) -> Callable[[], object]:
    """The folder of the snapshots cannot be made."""
    paths.backups.write_bytes(b"")
    return paths.backups.unlink


def break_store(paths: Paths) -> Callable[[], object]:
    """A store of another program is damaged."""
    path = paths.state / "sessions/sessions.db"
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1000)
    return path.unlink


async def test_a_clock_that_was_ahead_stops_nothing(tmp_path: Path) -> None:
    """The last attempt lies days ahead: the next one is that of tomorrow, not of those days."""
    async with made(tmp_path) as (maker, plans):
        maker.record._data["attempted_at"] = clock.to_wire(clock.now() + timedelta(days=9))
        await _look(maker, plans)
        tomorrow = clock.now() + timedelta(days=1)
        due = due_at(plans.current.backup.schedule, maker.record.attempted_at, tomorrow)
        assert due is not None
        assert due <= tomorrow


@pytest.mark.parametrize("breaking", [break_record, break_folder, break_store])
async def test_an_error_of_the_system_is_a_failed_backup(
    tmp_path: Path, breaking: Callable[[Paths], Callable[[], object]]
) -> None:
    """The schedule goes on, a backup by hand says why, and both work again once it is repaired."""
    async with made(tmp_path) as (maker, plans):
        repair = breaking(Paths(tmp_path))
        assert await _look(maker, plans) >= 1
        assert (state_of(maker), is_overdue(maker)) == ("failed", False)
        with pytest.raises(BackupUnusable, match="cannot make a backup: "):
            await maker.create("", "urn:test")
        repair()
        assert await make_by_hand(maker) == "created"


class BrokenProgram:
    """Leaves half a result."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self._paths.backup_run.mkdir(parents=True, exist_ok=True)
        self._paths.backup_result.write_bytes(b"{half")
        return program._result(self._paths, request)


async def test_a_result_that_is_not_json_is_a_failed_backup(tmp_path: Path) -> None:
    """Neither it nor any other mistake of agentbox hangs the next backup."""
    async with made(tmp_path) as (maker, plans):
        sound, maker._program = maker._program, BrokenProgram(Paths(tmp_path))
        await asyncio.wait_for(_look(maker, plans), 60)
        assert state_of(maker) == "failed"
        maker._program = sound
        assert await make_by_hand(maker) == "created"
        assert list(Paths(tmp_path).backup_staging.iterdir()) == []


async def test_a_refused_run_waits_for_its_next_time(tmp_path: Path) -> None:
    """Without recipients, and while another backup is made: it is not tried again each second."""
    async with made(tmp_path, encrypt="age", recipients=()) as (maker, plans):
        await _look(maker, plans)
        assert not is_overdue(maker)
        set_overdue(maker)
        async with maker._running:
            await _look(maker, plans)
        assert not is_overdue(maker)


async def test_the_end_of_the_schedule_is_not_that_of_backups(tmp_path: Path) -> None:
    """Its job ends; a backup by hand is made."""
    async with made(tmp_path, schedule="") as (maker, plans):
        ready = asyncio.Event()
        job = asyncio.create_task(run_schedule(maker, plans, ready))
        await wait_until(lambda: len(ready._waiters) == 1 or job.done(), "the schedule waits")
        job.cancel()
        await asyncio.wait({job})
        assert await make_by_hand(maker) == "created"


async def test_the_end_of_the_api_ends_a_backup(tmp_path: Path) -> None:
    """The backup under way has failed, and nothing of it is left."""
    async with made(tmp_path) as (maker, _plans):
        job = asyncio.create_task(maker.run())
        await maker.create("", "urn:test")
        job.cancel()
        with suppress(asyncio.CancelledError):
            await job
        await asyncio.wait_for(maker.wait(), 60)
        assert state_of(maker) == "failed"
        assert list(Paths(tmp_path).backup_staging.iterdir()) == []
