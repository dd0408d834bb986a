"""The typed clients of agents, sync and async, and the WebSocket on an agent's pipes, against a real box."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio
from agentbox_testkit.wait import wait_until
from raw import ask
from support.api_box import TOKEN, ApiBox

from agentbox.client import ApiError, AsyncBoxClient, BoxClient, BoxUnreachable

UPGRADE = "\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="


def spec(*argv: str, **more: Any) -> dict[str, Any]:
    return {"name": "test", "argv": list(argv), "profile": "sandboxed", **more}


def cat() -> dict[str, Any]:
    return spec("cat", stdin="pipe")


@pytest_asyncio.fixture
async def aio(box: ApiBox) -> AsyncIterator[AsyncBoxClient]:
    async with AsyncBoxClient(box.url, token=TOKEN) as made:
        yield made


@contextmanager
def token_of(client: BoxClient, box: ApiBox, *scopes: str) -> Iterator[BoxClient]:
    """A client with a principal of its own."""
    made = client.call(
        "create_token", body={"name": f"t{uuid.uuid4().hex[:8]}", "scopes": list(scopes)}
    )
    with box.client(made["value"]) as other:
        yield other


def handshake(box: ApiBox, path: str, token: str = TOKEN) -> Any:
    """The response to a GET that requests a WebSocket."""
    return ask(box.plan.api.port, f"GET {path} HTTP/1.1\nAuthorization: Bearer {token}{UPGRADE}")


def test_the_client_starts_follows_and_ends_agents(client: BoxClient) -> None:
    """Each call of `BoxClient.agents` has its effect, as the other calls show; one request id
    creates one agent."""
    key = uuid.uuid4().hex
    made = client.agents.spawn(
        spec("sh", "-c", "cat; exec sleep 1000", stdin="pipe"), request_id=key, input=b"given\n"
    )
    assert client.agents.spawn(spec("true"), request_id=key).agent_id == made.agent_id
    assert made.agent_id in {one.agent_id for one in client.agents.list(state="running").items}
    for item in client.agents.stream(made.agent_id):
        if item.kind == "stdout":
            assert item.data == b"given\n"
            break
    after = [
        one.cursor for one in client.agents.stream(made.agent_id, since=item.cursor, follow=False)
    ]
    assert item.cursor not in after
    client.agents.signal(made.agent_id, made.generation, "STOP")
    client.agents.signal(made.agent_id, made.generation, "CONT")
    ended = client.agents.terminate(made.agent_id, made.generation, grace_s=0)
    assert (ended.reason, client.agents.get(made.agent_id).exit) == ("terminated", ended)
    run = client.agents.run_once(spec("sh", "-c", "cat; exit 5"), stdin=b"in")
    assert (run.stdout, run.exit.code) == (b"in", 5)


async def test_the_asynchronous_client_does_the_same(aio: AsyncBoxClient) -> None:
    """Bytes are sent and received, the stream ends with the exit, an unknown agent is 404."""
    made = await aio.agents.spawn(cat())
    async with aio.agents.attach(made.agent_id, made.generation) as attached:
        await attached.send(b"one")
        assert await anext(aiter(attached)) == b"one"
        await attached.close_stdin()
        assert [chunk async for chunk in attached] == []
    assert [item.kind async for item in aio.agents.stream(made.agent_id)][-1] == "exit"
    with pytest.raises(ApiError) as unknown:
        await aio.agents.get(str(uuid.uuid4()))
    assert unknown.value.status == 404


def test_threads_attach(client: BoxClient) -> None:
    """The synchronous attachment carries more than any buffer between, both ways at once."""
    made, sent, got = client.agents.spawn(cat()), bytes(range(256)) * 20_000, bytearray()
    with client.agents.attach(made.agent_id, made.generation) as attached:
        sending = threading.Thread(target=lambda: (attached.send(sent), attached.close_stdin()))
        sending.start()
        for chunk in attached:
            got += chunk
        sending.join()
    assert bytes(got) == sent


def test_who_leaves_at_once_has_sent_what_it_sent(client: BoxClient) -> None:
    """Whatever the agent writes at that moment: each client attaches, sends a line, and disconnects
    before it reads anything."""
    chatters = "import sys, threading, time\ndef talk():\n while True: print(time.sleep(0.001), flush=True)\n"
    chatters += "threading.Thread(target=talk, daemon=True).start()\nfor line in sys.stdin: print(line, file=sys.stderr, flush=True)"
    made = client.agents.spawn(spec("python3", "-c", chatters, stdin="pipe"))
    number = 0
    while number < 30:
        try:
            with client.agents.attach(made.agent_id, made.generation) as attached:
                attached.send(b"%d\n" % number)
        except ApiError as error:  # the previous client stays attached until its input is written
            if error.status != 409:
                raise
        else:
            number += 1
    told = bytearray()
    for item in client.agents.stream(made.agent_id):
        told += item.data if item.kind == "stderr" else b""
        if b"29" in told.split():
            break
    client.agents.terminate(made.agent_id, made.generation, grace_s=0)
    assert told.split() == [b"%d" % number for number in range(30)]


async def test_a_second_holder_is_refused_before_the_upgrade(
    box: ApiBox, aio: AsyncBoxClient
) -> None:
    """409 as a problem, typed in the client; also for a stale generation and an unknown agent. Once
    detached, the next client can attach."""
    made = await aio.agents.spawn(cat())
    async with aio.agents.attach(made.agent_id, made.generation) as attached:
        await attached.send(b"x")
        answer = await asyncio.to_thread(
            handshake, box, f"/v1/agents/{made.agent_id}/attach?generation=1"
        )
        assert (answer.status, answer.json()["code"]) == (409, "invalid-transition")
        assert answer.headers["content-type"] == "application/problem+json"
        for agent_id, generation, code in (
            (made.agent_id, 1, "invalid-transition"), (made.agent_id, 7, "stale-generation"), (str(uuid.uuid4()), 1, "not-found"),
        ):  # fmt: skip
            with pytest.raises(ApiError) as refused:
                await aio.attach(agent_id, generation)
            assert refused.value.code == code
    async with asyncio.timeout(30):
        while True:
            try:
                await (await aio.attach(made.agent_id, made.generation)).aclose()
                break
            except ApiError:
                await asyncio.sleep(0.01)
    await aio.agents.terminate(made.agent_id, 1)


async def test_refused_input_is_told_and_ends_no_output(aio: AsyncBoxClient) -> None:
    """An agent that closed its stdin continues to write: sending to it fails with a typed error,
    its output arrives."""
    made = await aio.agents.spawn(
        spec("sh", "-c", "exec 0<&-; sleep 0.3; echo said; sleep 1000", stdin="pipe")
    )
    attached = await aio.attach(made.agent_id, made.generation)
    await attached.send(b"x")
    chunks = aiter(attached)
    await attached.send(b"y")
    assert await anext(chunks) == b"said\n"
    with pytest.raises(ApiError) as refused:
        await _send_for_ever(attached)
    assert refused.value.code == "invalid-transition"
    await attached.aclose()
    await aio.agents.terminate(made.agent_id, 1, grace_s=0)


async def _send_for_ever(attached: Any) -> None:
    """The pipe accepts bytes until the kernel has closed its other end."""
    async with asyncio.timeout(30):
        while True:
            await attached.send(b"z")


def test_the_handshake_is_judged_like_any_request(box: ApiBox, client: BoxClient) -> None:
    """No token 401, a token without the scope 403, another Host 421, an unknown path 404, no generation 400; a GET without
    the upgrade and an upgrade elsewhere are 400."""
    path = "/v1/agents/x/attach?generation=1"
    assert handshake(box, path, "wrong").status == 401
    with token_of(client, box, "agents:read") as reader:
        value = reader._http._headers["Authorization"].removeprefix("Bearer ")
        answer = handshake(box, path, value)
        assert (answer.status, answer.json()["scope"]) == (403, "agents:write")
    foreign = f"GET {path} HTTP/1.1\nHost: evil.example\nAuthorization: Bearer {TOKEN}{UPGRADE}"
    assert ask(box.plan.api.port, foreign).status == 421
    assert handshake(box, "/v1/nothing").status == 404
    assert handshake(box, path).status == 404
    assert handshake(box, "/v1/agents/x/attach").status == 400
    assert handshake(box, "/v1/agents").json()["errors"][0]["pointer"] == "Upgrade"
    with pytest.raises(ApiError) as plain:
        client.call("attach_agent", {"id": "x"}, query={"generation": 1})
    assert plain.value.problem["errors"][0]["pointer"] == "Upgrade"


def test_request_ids_belong_to_a_principal(box: ApiBox, client: BoxClient) -> None:
    """Two tokens with one `Idempotency-Key` have two agents, and one that is no admin raises no limit."""
    key, found = uuid.uuid4().hex, set()
    for _ in range(2):
        with token_of(client, box, "agents:read", "agents:write") as other:
            found.add(other.agents.spawn(spec("true"), request_id=key).agent_id)
            with pytest.raises(ApiError) as raised:
                other.agents.spawn(spec("true", limits={"pids": 100_000}))
            assert raised.value.code == "quota-exceeded"
    assert len(found) == 2


async def test_an_api_that_dies_cuts_the_socket_and_ends_no_agent(own_box: Any) -> None:
    """SIGKILL of the API: the attached client gets an error, the agent continues, and after a
    restart the next client attaches to its pipes."""
    box = await asyncio.to_thread(own_box)
    async with AsyncBoxClient(box.url, token=TOKEN) as aio:
        made = await aio.agents.spawn(cat())
        attached = await aio.attach(made.agent_id, made.generation)
        await attached.send(b"one")
        assert await anext(aiter(attached)) == b"one"
        box.kill()
        with pytest.raises(BoxUnreachable):
            await anext(aiter(attached))
        await attached.aclose()
        await asyncio.to_thread(box.start)
        async with aio.agents.attach(made.agent_id, made.generation) as again:
            await again.send(b"two")
            assert await anext(aiter(again)) == b"two"
        held = [
            one
            for one in (await aio.agents.list(state="running")).items
            if one.agent_id == made.agent_id
        ]
        await wait_until(lambda: len(held) == 1, "it runs")
