"""What a crash may not do to a task."""

import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from helpers import read_all, sh, text, until
from support.api_box import SLOTS, ApiBox

from agentbox.core.linux import procfs

LINES = 400
COUNTING = f"n=0; while [ $n -lt {LINES} ]; do n=$((n+1)); echo line $n; sleep 0.005; done; exit 5"
Start = Callable[..., ApiBox]


def wanted() -> str:
    return "".join(f"line {n}\n" for n in range(1, LINES + 1))


def test_a_killed_api_loses_neither_agent_nor_line(own_box: Start) -> None:
    """SIGKILL of the API three times during a run: the reader gets every line once, and the agent's own exit code."""
    box = own_box()
    with box.client() as client:
        task_id = client.submit_task(sh(COUNTING)).task_id
        agent = until(lambda: client.get_task(task_id).agent_id)
        pid = client.call("get_agent", {"id": agent})["pid"]
        found: list[object] = []
        reader = threading.Thread(target=lambda: found.extend(read_all(client, task_id)))
        reader.start()
        for _ in range(3):
            box.kill()
            assert procfs.is_alive(pid)
            box.start()
        reader.join(30)
        items, task = found
        assert text(items) == wanted()  # type: ignore[arg-type]
        assert (task.exit["code"], task.attempts, task.agent_id) == (5, 1, agent)  # type: ignore[attr-defined]


def test_a_killed_api_takes_the_lease_up_again(own_box: Start) -> None:
    """The run outlives several leases across a crash: heartbeats continue, and no second agent is
    started."""
    slots = {
        **SLOTS,
        "beads": SLOTS["beads"].__class__(
            use="local-sqlite", required=False, options={"lease_seconds": 5}
        ),
    }
    box = own_box(slots=slots)
    with box.client() as client:
        task_id = client.submit_task(sh("sleep 8; exit 0")).task_id
        agent = until(lambda: client.get_task(task_id).agent_id)
        box.kill()
        box.start()
        _, task = read_all(client, task_id)
        assert (task.state, task.attempts, task.agent_id) == ("succeeded", 1, agent)
        assert len(client.call("list_agents")["items"]) == 1


def test_an_api_away_longer_than_the_lease_keeps_the_agent(own_box: Start) -> None:
    """An expired lease is claimed again by the box that has the spool; the agent is the same one."""
    slots = {
        **SLOTS,
        "beads": SLOTS["beads"].__class__(
            use="local-sqlite", required=False, options={"lease_seconds": 5}
        ),
    }
    box = own_box(slots=slots)
    with box.client() as client:
        task_id = client.submit_task(sh("sleep 9; exit 0")).task_id
        agent = until(lambda: client.get_task(task_id).agent_id)
        box.kill()
        gone = threading.Event()
        assert not gone.wait(6)
        box.start()
        _, task = read_all(client, task_id)
        assert (task.state, task.agent_id) == ("succeeded", agent)


def test_a_killed_api_cuts_no_input_off(own_box: Start) -> None:
    """The API dies before the program has read its input: the program gets every byte, and the end of it."""
    box = own_box()
    with box.client() as client:
        task_id = client.submit_task(sh("sleep 2; wc -c"), input=b"x" * 300_000).task_id
        until(lambda: client.get_task(task_id).agent_id)
        box.kill()
        box.start()
        items, task = read_all(client, task_id)
        assert (text(items).strip(), task.state) == ("300000", "succeeded")


def test_a_killed_agent_host_is_told_by_the_bead(own_box: Start) -> None:
    """SIGKILL of agent-host: its agents end, and a note of the bead explains it."""
    box = own_box()
    assert box.host is not None
    with box.client() as client:
        task_id = client.submit_task(sh("echo begun; sleep 300 & sleep 300")).task_id
        agent = until(lambda: client.get_task(task_id).agent_id)
        pid = client.call("get_agent", {"id": agent})["pid"]
        with closing(client.task_logs(task_id)) as log:
            next(log)  # what it wrote is stored
        box.host.kill()
        until(lambda: not procfs.is_alive(pid))
        box.host.start()
        items, task = read_all(client, task_id)
        assert text(items) == "begun\n"
        assert task.state == "failed"
        assert task.note.startswith("agent-host died while it ran")
        assert task.exit is not None
        assert task.exit["reason"] == "lost"


@pytest.mark.parametrize("when", ["queued", "running"])
def test_a_crash_during_submission_runs_a_task_at_most_once(own_box: Start, when: str) -> None:
    """Killed right after the 202 (or the spawn): the task runs exactly once."""
    box = own_box()
    marks = box.paths.workspace / "marks"
    with box.client() as client:
        task_id = client.submit_task(sh(f"echo x >> {marks}; exit 0", workspace="direct")).task_id
        if when == "running":
            until(lambda: client.get_task(task_id).agent_id or client.get_task(task_id).final)
        box.kill()
        box.start()
        assert read_all(client, task_id)[1].state == "succeeded"
    assert marks.read_text() == "x\n"


def test_a_drain_ends_what_runs_and_says_so(own_box: Start) -> None:
    """SIGTERM of a lone API is the end of the box: agents end, beads close as failed, the next start has nothing to do."""
    box = own_box()
    with box.client() as client:
        task_id = client.submit_task(sh("sleep 300")).task_id
        agent = until(lambda: client.get_task(task_id).agent_id)
        pid = client.call("get_agent", {"id": agent})["pid"]
        assert box.stop() == 0
        assert not procfs.is_alive(pid)
        box.start()
        task = client.get_task(task_id)
        assert (task.state, task.note) == ("failed", "the box was shut down while it ran")
