"""From an action that waits for approval to the operator's verdict, over a real API and agent-host."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from commandline import agentbox
from helpers import ask_approval, sh, until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.core.slot_errors import PermissionDenied


@pytest.fixture
def agent(client: BoxClient) -> Iterator[str]:
    """The id of an agent that runs."""
    made = client.agents.spawn(sh("sleep 600"))
    yield made.agent_id
    client.agents.terminate(made.agent_id, made.generation)


@contextmanager
def following(box: ApiBox, token: str | None = None) -> Iterator[None]:
    """A client follows the events."""
    there, leave = threading.Event(), threading.Event()

    def read() -> None:
        with box.client() if token is None else box.client(token) as client:
            for _ in client.events.subscribe(since=-1):
                there.set()
                if leave.is_set():
                    return

    reader = threading.Thread(target=read)
    reader.start()
    assert there.wait(20)  # an agent may request at most ten approvals within an hour
    yield
    leave.set()
    with box.client() as client:
        client.events.append([{"type": "test.leave", "data": {}}])
    reader.join(20)
    assert not reader.is_alive()


def until_asked(
    box: ApiBox, client: BoxClient, agent: str, value: str
) -> tuple[ThreadPoolExecutor, str]:
    """Requests until an approver is connected; returns the requester and the id of the pending
    approval."""
    pool = ThreadPoolExecutor(1)

    def waits() -> str:
        asking = pool.submit(ask_approval, box, agent, value)
        found = until(lambda: _waiting(client) or asking.done())
        return "" if found is True else found[0]

    return pool, until(waits, 20)


def _waiting(client: BoxClient) -> list[str]:
    return [one.id for one in client.approvals.list().items if one.state == "waiting"]


def test_nobody_follows(box: ApiBox, client: BoxClient, agent: str) -> None:
    """Denied at once; a follower without the scope does not count as an approver."""
    with pytest.raises(PermissionDenied, match="no approver is connected"):
        ask_approval(box, agent, "pod/read")
    token = client.tokens.create("reader", ["events:read", "approvals:read"]).value
    with following(box, token), pytest.raises(PermissionDenied, match="no approver is connected"):
        ask_approval(box, agent, "pod/list")


def test_approve_and_deny(box: ApiBox, client: BoxClient, agent: str) -> None:
    """On the command line: the request is shown escaped, decided once (exit 7 afterwards), and
    journalled."""
    with following(box):
        pool, waiting = until_asked(box, client, agent, "pod/write")
        shown = agentbox(box, "approvals", "show", waiting).stdout.decode()
        assert "\\\\u001b[2J" in shown or "\\u001b[2J" in shown
        assert "\u201cplease\\u202e\u201d" in shown
        assert waiting in agentbox(box, "approvals", "list").stdout.decode()
        assert agentbox(box, "approvals", "approve", "--reason", "fine", waiting).returncode == 0
        until(lambda: client.approvals.get(waiting).state == "used")
        assert agentbox(box, "approvals", "deny", waiting).returncode == 7
        pool.shutdown()
        pool, waiting = until_asked(box, client, agent, "pod/delete")
        assert agentbox(box, "approvals", "deny", "--reason", "no", waiting).returncode == 0
        pool.shutdown()
        with pytest.raises(PermissionDenied, match="less than 10 minutes"):
            ask_approval(box, agent, "pod/delete")

        def decided() -> list[tuple[str, str, str]]:
            every = client.call("read_events", query={"limit": 1000, "types": "approval.decided"})[
                "events"
            ]
            told = (one["data"] for one in every)
            return [(one["by"], one["verdict"], one["reason"]) for one in told if one["by"]]

        said = until(
            lambda: len(found := decided()) >= 2 and found
        )  # the journal follows the record of agent-host
        assert said == [
            ("urn:agentbox:operator", "approve", "fine"),
            ("urn:agentbox:operator", "deny", "no"),
        ]


def test_scopes(client: BoxClient, box: ApiBox) -> None:
    """Reading does not decide."""
    token = client.tokens.create("reader", ["approvals:read", "agents:write"]).value
    with box.client(token) as reader:
        assert reader.approvals.list() is not None
        with pytest.raises(ApiError) as caught:
            reader.approvals.decide("01a1ff68-00ce-7519-a926-6cefa34c525a", "approve")
    assert (caught.value.status, caught.value.problem["scope"]) == (403, "approvals:write")
