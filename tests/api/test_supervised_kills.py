"""Each supervised program is killed in turn while agents run: what is lost, which agents continue,
and what reports it."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest
from helpers import sh, spec, until
from raw import ask
from test_supervised import Sealed, plan, started

from agentbox.client import BoxClient
from agentbox.contracts.orchestrator import AgentInfo

PROGRAMS = ("management-api", "gateway", "agent-host")
COUNTS = "n=0; while :; do echo $n; n=$((n+1)); sleep 0.02; done"
READY_SECONDS = 15.0


@pytest.fixture(scope="module")
def sealed() -> Iterator[Sealed]:
    with started(plan()) as running:
        yield running


def kill(box: Sealed, program: str) -> float:
    """SIGKILL; returns once the box is ready again, with another process of that name: after how many seconds."""
    before, since, began = box.pid(program), ready_since(box), time.monotonic()
    os.kill(before, signal.SIGKILL)
    until(lambda: ready_since(box) not in ("", since), READY_SECONDS)
    took = time.monotonic() - began
    assert box.pid(program) != before
    return took


def ready_since(box: Sealed) -> str:
    """Since when it is, "" while it is not."""
    with contextlib.suppress(OSError):
        return str(ask(box.plan.api.port, "GET /ready HTTP/1.1").json().get("since", ""))
    return ""


def counted(client: BoxClient, agent: AgentInfo) -> list[int]:
    """All numbers of an agent that counts, once it has printed some."""
    return [
        int(line)
        for item in client.agents.stream(agent.agent_id, follow=False) if item.kind == "stdout"
        for line in item.data.split()
    ]  # fmt: skip


def appended(client: BoxClient, what: str) -> int:
    return int(
        client.call(
            "append_events", body={"events": [{"type": "test.kill", "data": {"what": what}}]}
        )["first_seq"]
    )


def test_what_each_death_costs(sealed: Sealed) -> None:
    """Killing the API or the gateway costs no agent and no line of output. Killing agent-host ends
    its agents: rows, events and the bead of the task record it, and agents with a restart policy
    are restarted. No acknowledged event is lost, and the box is ready again each time, in the same
    boot."""
    client, boot = sealed.client, sealed.client.ready().boot_id
    counting = client.agents.spawn(sh(COUNTS))
    steady = client.agents.spawn(spec("sleep", "1000", name="steady", restart="always"))
    task = client.submit_task(sh("sleep 1000"))
    until(lambda: client.get_task(task.task_id).state == "running")
    pids = {one.agent_id: client.agents.get(one.agent_id).pid for one in (counting, steady)}
    acknowledged, took = [], {}
    for program in PROGRAMS[:2]:
        acknowledged.append(appended(client, program))
        seen = len(counted(client, counting))
        took[program] = kill(sealed, program)
        until(lambda seen=seen: len(counted(client, counting)) > seen + 5)
        now = {one: client.agents.get(one) for one in pids}
        assert {one: (found.pid, found.generation, found.state) for one, found in now.items()} == {
            one: (pid, 1, "running") for one, pid in pids.items()
        }
    acknowledged.append(appended(client, "agent-host"))
    last = counted(client, counting)
    assert last == list(range(len(last)))
    took["agent-host"] = kill(sealed, "agent-host")
    until(lambda: client.agents.get(counting.agent_id).state == "lost")
    again = until(
        lambda: (found := client.agents.get(steady.agent_id)).state == "running" and found
    )
    assert (again.generation, again.restarts, again.pid != pids[steady.agent_id]) == (2, 1, True)
    whole = counted(client, counting)
    assert whole[: len(last)] == last
    assert whole == list(range(len(whole)))
    bead = until(
        lambda: (
            (found := client.call("show_bead", {"id": task.task_id}))["status"] == "closed"
            and found
        )
    )
    assert (bead["outcome"], bead["result"]["exit"]["reason"]) == ("failed", "lost")
    until(lambda: ("agent.restarted", steady.agent_id) in lifecycle_events(client))
    assert {
        ("agent.lost", one) for one in (counting.agent_id, steady.agent_id)
    } <= lifecycle_events(client)
    kept = client.call("read_events", query={"types": "test.kill"})["events"]
    assert [one["seq"] for one in kept] == acknowledged
    assert client.ready().boot_id == boot
    assert all(seconds < READY_SECONDS for seconds in took.values())
    print({program: round(seconds, 2) for program, seconds in took.items()})


def lifecycle_events(client: BoxClient) -> set[tuple[str, str]]:
    found = client.call("read_events", query={"types": "agent.*", "limit": 1000})["events"]
    return {(one["type"], one["agent_id"]) for one in found}
