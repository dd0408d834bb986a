"""Calls of the tests of states."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from helpers import until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient

SCOPES = ["agents:read", "agents:write", "beads:write", "memory:read"]


@contextmanager
def bearer(box: ApiBox, client: BoxClient, name: str) -> Iterator[BoxClient]:
    """A client with a token of that name."""
    made = client.call("create_token", body={"name": name, "scopes": SCOPES})
    with box.client(made["value"]) as found:
        yield found


def refused_as(call: Callable[[], Any]) -> str:
    """The code of the error."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code


def end(client: BoxClient, agent_id: str) -> None:
    agent = client.agents.get(agent_id)
    if agent.exit is None or agent.state == "running":
        client.agents.terminate(agent_id, agent.generation, grace_s=0)


def journal(client: BoxClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.call(
        "read_events", query={"since": -1, "limit": 1000, "types": "state.*"}
    )["events"]
    return found


def token_of(client: BoxClient, agent_id: str, line: int = 0) -> str:
    """A line of its stdout: each run of SAYS_TOKEN prints its token."""

    def output() -> str:
        items = client.agents.stream(agent_id, follow=False)
        return b"".join(item.data for item in items if item.kind == "stdout").decode()

    return str(until(lambda: output().count("\n") > line and output().splitlines()[line]))
