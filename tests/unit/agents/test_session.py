"""The connection to a real agent-host, spoken by hand."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox

from agentbox.client.agent_host.connection import connect
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import Subscription
from agentbox.core.slot_errors import (
    AdapterTimeout,
    BackendError,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    SlotUnavailable,
)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


class Line:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    def send(self, **message: Any) -> None:
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def answer(self) -> Any:
        async with asyncio.timeout(30):
            line = await self._reader.readline()
        return json.loads(line) if line else None


@pytest.fixture
async def line(box: AgentHostBox) -> AsyncIterator[Line]:
    made = Line(*await asyncio.open_unix_connection(box.paths.agent_host_socket))
    yield made
    made.writer.close()


def token(box: AgentHostBox) -> str:
    return box.paths.token("agent-host").read_text(encoding="ascii")


def hello(box: AgentHostBox, **changed: str) -> dict[str, str]:
    return {"token": token(box), "contract_version": "1.0.0", **changed}


def spec(*argv: str) -> dict[str, Any]:
    return AgentSpec(name="test", argv=argv, profile="sandboxed").to_wire()


async def test_the_socket_and_the_token_are_private(box: AgentHostBox) -> None:
    """0600 and 0400."""
    assert box.paths.agent_host_socket.stat().st_mode & 0o777 == 0o600
    assert box.paths.token("agent-host").stat().st_mode & 0o777 == 0o400


@pytest.mark.parametrize(
    ("method", "changed", "code"),
    [
        ("initialize", {"token": "wrong"}, "permission-denied"),
        ("initialize", {"contract_version": "2.0.0"}, "contract-mismatch"),
        ("agent.list", {}, "permission-denied"),
    ],
)
async def test_strangers_are_turned_away(
    box: AgentHostBox, line: Line, method: str, changed: dict[str, str], code: str
) -> None:
    """A wrong token, another major version or another first call: a typed error, then the connection closes."""
    line.send(id=1, method=method, params=hello(box, **changed))
    assert (await line.answer())["error"]["data"]["code"] == code
    assert await line.answer() is None


@pytest.mark.parametrize(
    "garbage", [b"{\n", b"[]\n", b'{"id":1}\n', b'{"jsonrpc":"2.0","id":"x","method":"ping"}\n']
)
async def test_garbage_closes_the_connection(box: AgentHostBox, line: Line, garbage: bytes) -> None:
    """No reply; the host continues for others."""
    line.writer.write(garbage)
    assert await line.answer() is None
    client, _ = await connect(box.paths, Deadline.after(5))
    await client.call("ping", {}, Deadline.after(5))
    await client.close()


async def test_answers_come_in_any_order(box: AgentHostBox, line: Line) -> None:
    """A slow call delays no other; each reply has the id of its request."""
    line.send(id=1, method="initialize", params=hello(box))
    await line.answer()
    line.send(
        id=2, method="agent.run_once",
        params={"spec": spec("sleep", "0.3"), "request_id": uuid7(), "stdin": "", "timeout_s": 5, "max_output": 0},
    )  # fmt: skip
    line.send(id=3, method="ping", params={})
    assert [(await line.answer())["id"] for _ in range(2)] == [3, 2]


async def test_bounds_are_brought_along(tmp_path: Path) -> None:
    """Whoever opens with bounds changes them for what is started from then on; whoever brings none changes nothing."""
    box = AgentHostBox(tmp_path)
    box.start()

    async def spawn(**limits: Any) -> Any:
        client, _ = await connect(box.paths, Deadline.after(5), bounds=None)
        try:
            params = {"spec": {**spec("sleep", "100"), "limits": limits}, "request_id": uuid7()}
            return await client.call("agent.spawn", params, Deadline.after(5))
        finally:
            await client.close()

    async def bring(**bounds: Any) -> None:
        client, _ = await connect(box.paths, Deadline.after(5), bounds=bounds)
        await client.close()

    try:
        await spawn(fds=512)
        await bring(max_agents=1)
        with pytest.raises(QuotaExceeded) as caught:
            await spawn()
        assert (caught.value.members["cap"], caught.value.members["config_path"]) == (
            1,
            "adapters.orchestrator.max_agents",
        )
        await bring(max_agents=5, limits={"fds": 256})
        with pytest.raises(QuotaExceeded) as caught:
            await spawn(fds=512)
        assert (caught.value.members["cap"], caught.value.members["config_path"]) == (
            256,
            "limits.fds",
        )
        await spawn(fds=200, pids=100)
    finally:
        box.stop()


async def test_a_cancelled_call_is_not_answered(box: AgentHostBox, line: Line) -> None:
    """`$/cancel` ends the wait; the connection stays open."""
    line.send(id=1, method="initialize", params=hello(box))
    await line.answer()
    line.send(id=2, method="record.read", params={"after": 10**9, "wait_s": 30})
    line.send(method="$/cancel", params={"id": 2})
    line.send(id=3, method="ping", params={})
    assert (await line.answer())["id"] == 3


async def test_errors_are_typed(box: AgentHostBox) -> None:
    """An unknown method and an unknown agent are NotFound, missing params BackendError; the client raises the class."""
    client, hello = await connect(box.paths, Deadline.after(5))
    assert set(hello["capabilities"]) >= {"attach", "stream", "run_once"}
    with pytest.raises(NotFound):
        await client.call("agent.fly", {}, Deadline.after(5))
    with pytest.raises(NotFound) as caught:
        await client.call("agent.get", {"agent_id": "x"}, Deadline.after(5))
    assert caught.value.members == {"resource": "agent", "id": "x"}
    with pytest.raises(BackendError):
        await client.call("agent.get", {}, Deadline.after(5))
    await client.close()


async def test_no_page_of_agents_ends_the_connection(box: AgentHostBox) -> None:
    """Specs of running agents that together exceed a message are returned on several pages, each
    agent once."""
    client, _ = await connect(box.paths, Deadline.after(5))
    large = {"large": "x" * (messages.LINE_LIMIT // 4)}
    made = []
    for _ in range(5):
        run = {"spec": {**spec("sleep", "600"), "labels": large}, "request_id": uuid7()}
        made.append((await client.call("agent.spawn", run, Deadline.after(30)))["agent_id"])
    found, cursor = [], None
    while cursor is not None or not found:
        asked = {"filter": {"label": "large"}, "limit": 500, "cursor": cursor}
        page = await client.call("agent.list", asked, Deadline.after(30))
        found += [one["handle"]["agent_id"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert found == made
    await client.close()


async def test_a_deadline_is_kept(box: AgentHostBox) -> None:
    """AdapterTimeout after it, and a late answer is counted and dropped."""
    client, _ = await connect(box.paths, Deadline.after(5))
    run = {
        "spec": spec("sleep", "1"),
        "request_id": uuid7(),
        "stdin": "",
        "timeout_s": 5,
        "max_output": 0,
    }
    with pytest.raises(AdapterTimeout) as caught:
        await client.call("agent.run_once", run, Deadline.after(0.1))
    assert caught.value.members["method"] == "run_once"
    await client.call("ping", {}, Deadline.after(5))
    await client.close()


async def test_a_dead_host_fails_every_waiter(tmp_path: Path) -> None:
    """SlotUnavailable for waiting calls, for streams, and for later calls."""
    box = AgentHostBox(tmp_path)
    box.start()
    client, _ = await connect(box.paths, Deadline.after(5))
    waiting = asyncio.create_task(
        client.call("record.read", {"after": 0, "wait_s": 30}, Deadline.after(40))
    )
    handle = await client.call(
        "agent.spawn", {"spec": spec("sleep", "100"), "request_id": "x"}, Deadline.after(5)
    )
    stream = await client.subscribe(
        "agent.stream", {"agent_id": handle["agent_id"]}, Deadline.after(5)
    )
    box.kill()
    with pytest.raises(SlotUnavailable):
        await _drain(stream)
    (found,) = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(found, SlotUnavailable) or found["items"]
    with pytest.raises(SlotUnavailable):
        await client.call("ping", {}, Deadline.after(5))
    await client.close()


async def test_a_wrong_token_is_permission_denied(box: AgentHostBox, tmp_path: Path) -> None:
    """The adapter's connect raises it, and leaves no connection."""
    path = box.paths.token("agent-host")
    right = path.read_text(encoding="ascii")
    path.chmod(0o600)
    path.write_text("wrong", encoding="ascii")
    try:
        with pytest.raises(PermissionDenied):
            await connect(box.paths, Deadline.after(5))
    finally:
        path.write_text(right, encoding="ascii")
        path.chmod(0o400)


async def test_without_a_host_the_deadline_holds(tmp_path: Path) -> None:
    """SlotUnavailable, after the deadline and not long after."""
    box = AgentHostBox(tmp_path)
    async with asyncio.timeout(30):
        with pytest.raises(SlotUnavailable):
            await connect(box.paths, Deadline.after(0.2))


async def _drain(stream: Subscription) -> None:
    async for _ in stream.items():
        continue
