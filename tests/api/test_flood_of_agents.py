"""Two agents within their own limits flood a box that allows fewer processes and threads than both
together use."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from helpers import until
from raw import ask
from support.api_box import ApiBox, api_plan

from agentbox.policy.limits.reserve import agent_tasks
from agentbox.sandbox.launcher import tree

PIDS = 220
FLOOD = """
import threading, time
threading.stack_size(65536)
over = threading.Event()
while True:
    try: threading.Thread(target=over.wait, daemon=True).start()
    except RuntimeError: time.sleep(0.01)
"""
LIVE_SECONDS = 1.0


def flood() -> dict[str, Any]:
    argv = ["/usr/bin/python3", "-I", "-c", FLOOD]
    return {"name": "flood", "argv": argv, "profile": "sandboxed"}


@pytest.mark.timed
def test_the_box_answers_and_ends_agents_under_a_flood(own_box: Callable[..., ApiBox]) -> None:
    """The sum stays within the box's share, `/livez` answers, another agent runs, and each flood is
    ended."""
    plan = api_plan()
    box = own_box(plan=replace(plan, resources=replace(plan.resources, pids=PIDS)))
    assert box.host is not None
    most = agent_tasks(PIDS)

    def counts() -> list[int]:
        table = tree.scan()
        (launcher, *_) = [row.pid for row in table.values() if row.parent == box.host.pid]
        reapers = [row.pid for row in table.values() if row.parent == launcher]
        return [
            1 + sum(row.threads for row in rows)
            for rows in tree.descendants_by_root(table, reapers).values()
            if len(rows)
        ]

    with box.client() as client:
        agents = [client.agents.spawn(flood()) for _ in range(2)]
        until(lambda: sum(counts()) >= most - 8, 60)
        for _ in range(20):
            began = time.monotonic()
            assert ask(box.plan.api.port, "GET /livez HTTP/1.1").status == 200
            assert time.monotonic() - began < LIVE_SECONDS
            assert (
                sum(counts()) <= most + 8
            )  # the preforked reaper and the agent that it will start belong to no agent
        ran = client.agents.run_once(
            {"name": "beside", "argv": ["sh", "-c", "exit 7"], "profile": "sandboxed"}
        )
        assert ran.exit.code == 7
        until(
            lambda: any(
                "box_tasks" in str(client.agents.get(one.agent_id).denials) for one in agents
            ),
            30,
        )
        for one in agents:
            assert (
                client.agents.terminate(one.agent_id, one.generation, grace_s=0).reason
                == "terminated"
            )
        until(lambda: sum(counts()) < most // 2, 30)
