"""Ids in the journal: each event of a run has its session and trace, each event of an agent that
agent's id."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import until
from intruder import VICTIM
from support.api_box import ApiBox
from support.gateway_box import GatewayBox

from agentbox.client import ApiError, BoxClient
from agentbox.core.ids import uuid7

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
DENIED = "import socket\ntry:\n    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nexcept OSError:\n    pass\n"
OUTSIDE = {"name": "strays", "argv": ["true"], "cwd": "/proc"}
BEFORE_THE_AGENT = ("agent.spawn.requested", "slot.write")
Events = list[Mapping[str, Any]]


@pytest.fixture(scope="module")
def box(prefix: Path) -> Iterator[ApiBox]:
    """With a gateway, and an earlier task, which created the epic of all tasks."""
    found = ApiBox(prefix)
    found.paths.token("gateway").parent.mkdir(parents=True, exist_ok=True)
    found.paths.token("gateway").write_text("a-token-of-this-boot")
    with found, GatewayBox(prefix, found.plan), found.client() as client:
        run(client, ("true",))
        yield found


def run(
    client: BoxClient, argv: tuple[str, ...], given: bytes | None = None, **headers: str
) -> Mapping[str, Any]:
    """A task, once it has ended and the journal has its last event."""
    spec = {"name": "who", "argv": list(argv), "stdin": "null" if given is None else "pipe"}
    body: dict[str, Any] = {"spec": spec}
    if given is not None:
        body["input"] = base64.b64encode(given).decode()
    task = client.call("submit_task", body=body, headers=headers)["task_id"]
    found = until(lambda: _ended(client, task))
    until(lambda: "agent.exited" in types(events(client, agent_id=found["agent_id"])))
    until(
        lambda: (
            "close_bead"
            in [
                one["data"].get("method") for one in events(client) if one["data"].get("id") == task
            ]
        )
    )
    return found


def _ended(client: BoxClient, task: str) -> Any:
    found = client.call("get_task", {"id": task})
    return found if found["state"] in ("succeeded", "failed") else None


def events(client: BoxClient, since: int = -1, **query: str) -> Events:
    found: Events = client.call("read_events", query={"since": since, "limit": 1000, **query})[
        "events"
    ]
    return found


def types(found: Events) -> list[str]:
    return [str(event["type"]) for event in found]


def head(client: BoxClient) -> int:
    return int(client.call("head_event")["seq"])


def test_every_event_of_a_run(client: BoxClient) -> None:
    """Of a program that uses every slot and is refused something: what it appended, what it wrote, what became of it, and what
    the box did for its task. The trace is that of the caller's traceparent."""
    before = head(client)
    given = json.dumps({"word": uuid7(), "stays": False}).encode() + b"\n"
    task = run(
        client,
        ("python3", "-I", "-c", DENIED + VICTIM),
        given,
        traceparent=f"00-{TRACE}-{PARENT}-01",
    )
    assert task["state"] == "succeeded", task
    found, agent = events(client, before), task["agent_id"]
    assert {
        "agent.started",
        "agent.exited",
        "note.left",
        "policy.denied",
        "agent.spawn.requested",
    } <= set(types(found))
    written = {event["data"].get("method") for event in found if event["type"] == "slot.write"}
    assert {"create_child", "claim", "close_bead", "store", "write", "create_epic"} <= written
    assert [
        event
        for event in found
        if (event["session_id"], event["trace_id"]) != (task["task_id"], TRACE)
    ] == []
    own = [
        one for one in found if one["source"].endswith(agent) or one["type"] not in BEFORE_THE_AGENT
    ]
    assert len(own) >= 9
    assert {event["agent_id"] for event in own} == {agent}


def test_a_trace_where_the_caller_gave_none(client: BoxClient) -> None:
    """16 random bytes, another for each run; a traceparent that is not valid counts for none."""
    odd = (
        f"00-{'0' * 32}-{PARENT}-01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-x",
        "x",
    )
    traces = set()
    for header in odd:
        task = run(client, ("true",), traceparent=header)
        (trace,) = {event["trace_id"] for event in events(client, session_id=task["task_id"])}
        assert re.fullmatch("[0-9a-f]{32}", trace)
        traces.add(trace)
    assert len(traces - {TRACE}) == len(odd)


def test_a_family_has_the_session_of_its_head(client: BoxClient) -> None:
    """Agents without a task: the head's id is the session of all, and its trace the trace of all."""
    head_agent = client.call("spawn", body={"name": "head", "argv": ["sleep", "60"]})["handle"]
    parent = head_agent["agent_id"]
    child = client.call("spawn", body={"name": "child", "argv": ["true"], "parent_id": parent})[
        "handle"
    ]["agent_id"]
    until(lambda: "agent.exited" in types(events(client, agent_id=child)))
    client.call("terminate_agent", {"id": parent}, query={"generation": 1})
    until(lambda: "agent.exited" in types(events(client, agent_id=parent)))
    told = [event for event in events(client) if event["agent_id"] in (parent, child)]
    assert {event["session_id"] for event in told} == {parent}
    assert "agent.terminate.requested" in types(told)
    lives = [event for event in told if event["type"] in ("agent.started", "agent.exited")]
    assert len(lives) == 4
    assert len({event["trace_id"] for event in lives}) == 1


def test_a_refused_start_has_the_trace_of_who_asked(client: BoxClient) -> None:
    """There is no agent; the caller finds the event by the trace."""
    with pytest.raises(ApiError):
        client.call("spawn", body=OUTSIDE, headers={"traceparent": f"00-{'b' * 32}-{PARENT}-00"})
    until(
        lambda: [
            one
            for one in events(client)
            if (one["type"], one["trace_id"]) == ("policy.denied", "b" * 32)
        ]
    )
