"""What a disk that refuses may not do to tasks."""

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers import read_all, sh, until
from support.api_box import SLOTS, ApiBox

from agentbox.client import ApiError
from agentbox.core import clock

Start = Callable[..., ApiBox]


def obstacle(box: ApiBox, entry: Path) -> Path:
    """A directory at the temporary name of that entry: each save fails."""
    assert box.process is not None
    return entry.with_name(f".{entry.name}.{box.process.pid}")


def entries(box: ApiBox) -> list[Path]:
    return list(box.paths.task_spool.glob("*.json"))


def test_a_task_that_cannot_be_noted_is_begun_once_it_can(own_box: Start) -> None:
    """A save that fails when a task is due stops neither that task nor later ones permanently."""
    box = own_box()
    with box.client() as client:
        due = clock.to_wire(datetime.now(UTC) + timedelta(seconds=1))
        late = client.submit_task(sh("exit 0"), not_before=due).task_id
        blocked = obstacle(box, until(lambda: entries(box))[0])
        blocked.mkdir()
        until(lambda: "no tasks started" in box.log.read_text(), 20)
        blocked.rmdir()
        later = client.submit_task(sh("exit 0")).task_id
        assert [read_all(client, task_id)[1].state for task_id in (late, later)] == [
            "succeeded",
            "succeeded",
        ]


def test_an_agent_whose_id_cannot_be_noted_is_not_started_twice(own_box: Start) -> None:
    """The save after the spawn fails: the run continues, past its lease, and no second agent is
    started."""
    beads = SLOTS["beads"].__class__(
        use="local-sqlite", required=False, options={"lease_seconds": 5}
    )
    box = own_box(slots={**SLOTS, "beads": beads})
    assert box.host is not None
    with box.client() as client:
        os.kill(box.host.pid, signal.SIGSTOP)
        try:
            task_id = client.submit_task(sh("sleep 8; exit 0")).task_id
            entry = until(
                lambda: [
                    path for path in entries(box) if json.loads(path.read_bytes())["request_id"]
                ]
            )[0]
            obstacle(box, entry).mkdir()
        finally:
            os.kill(box.host.pid, signal.SIGCONT)
        _, task = read_all(client, task_id)
        assert (task.state, task.attempts) == ("succeeded", 1)
        assert len(client.call("list_agents")["items"]) == 1


def test_a_task_that_cannot_be_kept_is_refused(own_box: Start) -> None:
    """Nothing is queued that a crash would lose: the answer is a typed refusal, and no bug."""
    box = own_box()
    with box.client() as client:
        box.paths.task_spool.rename(box.paths.task_spool.with_name("away"))
        with pytest.raises(ApiError) as refused:
            client.submit_task(sh("exit 0"))
        assert (refused.value.status, refused.value.code) == (502, "backend-error")
        assert client.list_tasks().items == ()
