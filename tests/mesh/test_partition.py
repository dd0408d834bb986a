"""A partition: agents continue, results and events are queued, and all of them are on the host once
it returns, in order, once."""

from typing import Any

from helpers import sh, until
from meshes import Start, told
from support.api_box import SLOTS, ApiBox
from support.mesh import client_plan, host_plan

from agentbox.plan.model import SlotPlan

TASKS, EVENTS = 12, 300
BESIDES = {
    "orchestrator": SLOTS["orchestrator"],
    "events": SlotPlan(
        use="external-http",
        required=False,
        options={"endpoint": "", "fsync": "group", "tee_local": True},
    ),
}


def status(box: ApiBox) -> dict[str, Any]:
    with box.client() as client:
        result: dict[str, Any] = client.call("mesh_status")
    return result


def test_what_happens_in_a_partition_is_on_the_host_after_it(start: Start) -> None:
    """The host is killed while agents run. New ones are refused nothing but the beads that they would need."""
    host = start(host_plan())
    box = start(client_plan(host.url, slots=BESIDES), wait=False)
    until(lambda: status(box)["state"] == "active", 20)
    with box.client() as client:
        tasks = [client.submit_task(sh(f"sleep 2; echo {n}")).task_id for n in range(TASKS)]
        until(lambda: all(client.get_task(task).state == "running" for task in tasks), 20)
        host.kill()
        for number in range(EVENTS):
            client.call(
                "append_events", body={"events": [{"type": "test.n", "data": {"n": number}}]}
            )
        stored = until(lambda: (result := status(box))["outbox"]["depth"] == TASKS and result, 30)
        assert stored["state"] in ("suspect", "partitioned")
        listed = client.call("mesh_outbox")["items"]
        assert {item["bead_id"] for item in listed} == set(tasks)
        host.start()
        until(
            lambda: (result := status(box))["state"] == "active" and result["outbox"]["depth"] == 0,
            30,
        )
    with host.client() as operator:
        closed = [operator.call("show_bead", {"id": task}) for task in tasks]
        assert [(bead["status"], bead["outcome"], bead["attempts"]) for bead in closed] == [
            ("closed", "done", 1)
        ] * TASKS
        numbers = until(lambda: len(result := _numbers(operator)) >= EVENTS and result, 20)
    assert numbers == list(range(EVENTS))
    assert list(box.paths.task_spool.glob("*.json")) == []
    assert told(box, "bead.result.orphaned") == []


def _numbers(operator: Any) -> list[int]:
    """What the journal of the host has of them, in its order."""
    result, since = [], -1
    while page := operator.call(
        "read_events", query={"since": since, "limit": 1000, "types": "test.n"}
    )["events"]:
        result += [event["data"]["n"] for event in page]
        since = page[-1]["seq"]
    return result
