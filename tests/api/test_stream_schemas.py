"""The streams send what `/openapi.json` describes."""

import json
from typing import Any

from helpers import read_all, sh, until
from jsonschema import Draft202012Validator

from agentbox.client import BoxClient
from agentbox.client.transport import build_call
from agentbox.core.http.sse_parser import SseEvent, SseParser


def _schema(client: BoxClient, path: str) -> Draft202012Validator:
    document = client.openapi()
    found = document["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"][
        "schema"
    ]
    return Draft202012Validator({**found, "components": document["components"]})


def _events(client: BoxClient, name: str, **parameters: str) -> list[SseEvent]:
    """All that a stream sends to a client that does not follow it."""
    parser, found = SseParser(), list[SseEvent]()
    with client.streaming(build_call(name, parameters, query={"follow": "false"})) as response:
        for chunk in response.iter_bytes():
            found += parser.feed(chunk)
    return found


def test_every_event_of_a_task_and_of_its_agent_fits_its_schema(client: BoxClient) -> None:
    """Output of both kinds, the states, the end, and the task itself, as a real run sends them."""
    task_id = client.submit_task(sh("echo out; echo err >&2; exit 3")).task_id
    _, task = read_all(client, task_id)
    for name, path, identity, kinds in (
        (
            "task_logs",
            "/v1/tasks/{id}/logs",
            task_id,
            {"stdout", "stderr", "state", "exit", "task"},
        ),
        (
            "stream_agent",
            "/v1/agents/{id}/stream",
            str(task.agent_id),
            {"stdout", "stderr", "state", "exit"},
        ),
    ):
        schema, events = _schema(client, path), _events(client, name, id=identity)
        assert {one.event for one in events} == kinds
        for event in events:
            assert list(schema.iter_errors(json.loads(event.data))) == [], event


def test_every_event_of_the_journal_fits_its_schema(client: BoxClient) -> None:
    """Those of the run before, each type of them."""
    read_all(client, client.submit_task(sh("exit 0")).task_id)
    until(lambda: client.call("read_events", query={"types": "agent.exited"})["events"])
    schema, seen = _schema(client, "/v1/events/stream"), set[str]()
    head: int = client.call("head_event")["seq"]
    for event in client.stream("stream_events", query={"since": -1}):
        data: Any = json.loads(event.data)
        assert list(schema.iter_errors(data)) == [], event
        seen.add(data["type"])
        if data["seq"] >= head:
            break
    assert {"agent.started", "agent.exited"} <= seen
