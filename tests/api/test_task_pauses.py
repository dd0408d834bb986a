"""A box that is paused or suspended, and then continues, with a running task."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from helpers import sh, until
from support.api_box import SLOTS, ApiBox

from agentbox.client import BoxClient
from agentbox.plan.model import SlotPlan

LEASE_SECONDS = 6


@contextmanager
def paused(box: ApiBox) -> Iterator[None]:
    """The API as a frozen machine leaves it."""
    assert box.process is not None
    os.kill(box.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(box.process.pid, signal.SIGCONT)


@pytest.fixture
def short(own_box: Callable[..., ApiBox]) -> ApiBox:
    """Leases of a few seconds."""
    beads = SlotPlan(use="local-sqlite", required=False, options={"lease_seconds": LEASE_SECONDS})
    return own_box(slots={**SLOTS, "beads": beads})


def _running(client: BoxClient) -> str:
    task_id = client.submit_task(sh("read x < fifo || sleep 300")).task_id
    until(lambda: client.get_task(task_id).agent_id and client.get_task(task_id).state == "running")
    return task_id


def _wait(seconds: float) -> None:
    """What is tested is that nothing happens in that time."""
    ends = time.monotonic() + seconds
    until(lambda: time.monotonic() > ends)


@pytest.mark.timed
def test_a_paused_box_keeps_its_tasks(short: ApiBox) -> None:
    """Longer than the lease is good for: the task runs on, with the attempt and the agent that it had."""
    with short.client() as client:
        task_id = _running(client)
        before = client.get_task(task_id)
        with paused(short):
            _wait(LEASE_SECONDS * 1.5)
        _wait(LEASE_SECONDS)
        after = client.get_task(task_id)
        assert (after.agent_id, after.attempts) == (before.agent_id, 1)
        assert client.cancel_task(task_id).state == "cancelled"


@pytest.mark.timed
def test_a_lease_that_expired_is_taken_again(short: ApiBox) -> None:
    """As with a remote store of beads, whose clock continued: nobody claimed the bead, and its
    agent is not ended."""
    with short.client() as client:
        task_id = _running(client)
        with sqlite3.connect(short.paths.slot("beads") / "beads.db") as db:
            db.execute("UPDATE beads SET lease_expires_at = 1 WHERE id = ?", (task_id,))
        until(lambda: client.get_task(task_id).attempts == 2)
        assert client.get_task(task_id).state == "running"
        assert client.cancel_task(task_id).state == "cancelled"
