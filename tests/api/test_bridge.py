"""A box whose orchestrator is external-stdio: the bridge's own agents, and those of another box (self-federation)."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.contracts.orchestrator_lab import running_pids
from agentbox_testkit.wait import wait_until
from support.api_box import SLOTS, ApiBox, api_plan

from agentbox.box.supervision.secrets import store_secret
from agentbox.client import ApiError, BoxClient
from agentbox.plan.model import SlotPlan
from agentbox.sandbox.launcher import tree

VARIABLE = "PEER_TOKEN"
SCOPES = ("agents:read", "agents:write")


def spec(*argv: str) -> dict[str, Any]:
    return {"name": "test", "argv": list(argv), "profile": "sandboxed"}


def bridged(prefix: Path, *words: str, token: str = "") -> ApiBox:
    """A box without agent-host; its secret is the one that the bridge receives."""
    command = (sys.executable, "-I", "-m", "agentbox.agents.bridge", *words)
    slot = SlotPlan(
        use="external-stdio", required=False, options={"command": command, "env": (VARIABLE,)}
    )
    plan = api_plan(slots={**SLOTS, "orchestrator": slot})
    box = ApiBox(prefix, plan=replace(plan, name="b"), orchestrator=False)
    box.paths.moved_secrets.parent.mkdir(parents=True, exist_ok=True)
    store_secret(box.paths, VARIABLE, token or "unused")
    return box


def child_of(box: ApiBox) -> int:
    """The bridge of that box."""
    assert box.process is not None
    below = {row.pid for row in tree.descendants(tree.scan(), [box.process.pid])}
    (found,) = [pid for pid in running_pids("agentbox.agents.bridge") if pid in below]
    return found


def orchestrator(client: BoxClient) -> str:
    return str(client.health().adapters["orchestrator"].state)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ApiBox]:
    with bridged(tmp_path) as made:
        yield made


@pytest.fixture
def pair(own_box: Callable[..., ApiBox], tmp_path: Path) -> Iterator[tuple[ApiBox, ApiBox]]:
    """A host, and a box whose agents run on it."""
    host = own_box()
    with host.client() as client:
        made = client.call("create_token", body={"name": "box-b", "scopes": list(SCOPES)})
    with bridged(tmp_path, "--url", host.url, "--token-env", VARIABLE, token=made["value"]) as box:
        yield host, box


def event_types(client: BoxClient, agent_id: str) -> list[str]:
    """What the journal has of an agent."""
    events = client.call("read_events", query={"since": -1, "types": "agent.*", "limit": 1000})[
        "events"
    ]
    return [event["type"] for event in events if event["agent_id"] == agent_id]


def about(client: BoxClient, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.call(
        "read_events", query={"since": -1, "limit": 1000, **query}
    )["events"]
    return found


async def test_what_becomes_of_the_bridges_agents_is_journalled_once(own: ApiBox) -> None:
    """Start and end of each, in order, though no agent-host runs; the intent before them; a task has its receipt."""
    with own.client() as client:
        made = client.agents.spawn(spec("sh", "-c", "exit 3"))
        assert [item.kind for item in client.agents.stream(made.agent_id)][-1] == "exit"
        await wait_until(lambda: len(event_types(client, made.agent_id)) >= 2, "both are there")
        assert event_types(client, made.agent_id) == ["agent.started", "agent.exited"]
        task = client.submit_task(spec("sh", "-c", "echo out; exit 4"))
        *_, done = client.task_logs(task.task_id)
        assert (done.state, done.exit["code"]) == ("failed", 4)


async def test_a_killed_bridge_is_started_again_by_the_same_api(own: ApiBox) -> None:
    """The slot goes down and recovers with another child, under the same process; a waiting run
    fails with a typed error."""
    assert own.process is not None
    with own.client() as client:
        client.agents.spawn(spec("sleep", "1000"))
        api, child = own.process.pid, child_of(own)
        os.kill(child, signal.SIGKILL)
        await wait_until(lambda: orchestrator(client) == "down", "the slot is down")
        with pytest.raises(ApiError) as refused:
            client.agents.run_once(spec("true"))
        assert refused.value.code == "slot-unavailable"
        await wait_until(lambda: orchestrator(client) == "ok", "the slot is back", seconds=30)
        assert child_of(own) != child
        assert own.process.pid == api
        assert client.agents.run_once(spec("sh", "-c", "exit 6")).exit.code == 6


async def test_agents_of_another_box_are_run_from_here(pair: tuple[ApiBox, ApiBox]) -> None:
    """A task of B runs at A: A lists the agent and has it in its journal, B has the bead, the output and the exit. The token
    is on no command line. B's end ends no agent of A."""
    host, box = pair
    with host.client() as there, box.client() as here:
        task = here.submit_task(spec("sh", "-c", "echo from A; exit 9"))
        *output, done = here.task_logs(task.task_id)
        assert b"".join(item.data for item in output if item.kind == "stdout") == b"from A\n"
        assert (done.state, done.exit["code"]) == ("failed", 9)
        assert there.agents.get(done.agent_id).exit.code == 9
        await wait_until(
            lambda: event_types(there, done.agent_id) == ["agent.started", "agent.exited"],
            "A's journal has it",
        )
        assert event_types(here, done.agent_id) == []
        (trace,) = {one["trace_id"] for one in about(here, session_id=task.task_id)}
        assert {one["trace_id"] for one in about(there, agent_id=done.agent_id)} == {trace}
        value = (box.paths.moved_secrets / VARIABLE).read_text().encode()
        assert value not in Path(f"/proc/{child_of(box)}/cmdline").read_bytes()
        stays = here.agents.spawn(spec("sleep", "1000"))
        box.stop()
        assert there.agents.get(stays.agent_id).state == "running"
        there.agents.terminate(stays.agent_id, stays.generation, grace_s=0)


async def test_a_host_that_goes_away_and_returns(pair: tuple[ApiBox, ApiBox]) -> None:
    """B's slot is down while A's API is, and back without a restart of B; A's agent ran through it, its stream has no gap."""
    host, box = pair
    with box.client() as here:
        made = here.agents.spawn(
            spec("sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")
        )
        host.kill()
        with pytest.raises(ApiError) as refused:
            here.agents.get(made.agent_id)
        assert refused.value.retryable
        await wait_until(lambda: orchestrator(here) == "down", "B says so", seconds=15)
        host.start()
        await wait_until(lambda: orchestrator(here) == "ok", "B has it again", seconds=40)
        assert here.agents.get(made.agent_id).state == "running"
        items = list(here.agents.stream(made.agent_id, follow=False))
        lines = b"".join(item.data for item in items if item.kind == "stdout").splitlines()
        assert lines == [b"%d" % n for n in range(1, len(lines) + 1)]
        here.agents.terminate(made.agent_id, made.generation, grace_s=0)


async def test_a_token_that_is_revoked_shuts_the_way(pair: tuple[ApiBox, ApiBox]) -> None:
    """B's calls are refused typed from then on, and name no token."""
    host, box = pair
    with host.client() as there, box.client() as here:
        (token,) = [one for one in there.call("list_tokens")["items"] if one["name"] == "box-b"]
        there.call("revoke_token", {"id": token["id"]})
        with pytest.raises(ApiError) as refused:
            here.agents.list()
        assert refused.value.status in (403, 503)
        value = (box.paths.moved_secrets / VARIABLE).read_text()
        assert value not in str(refused.value.problem)
        await wait_until(lambda: orchestrator(here) == "down", "the slot is down", seconds=15)
        assert value not in box.log.read_text()
