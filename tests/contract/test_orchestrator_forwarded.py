"""orchestrator external-stdio over `bridge --url`: this box's agents are those of another box."""

import asyncio
import os
import signal
import time

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.orchestrator import OrchestratorContract
from agentbox_testkit.contracts.orchestrator_lab import (
    items,
    new_id,
    output,
    running_pids,
    shell,
    spec,
    wait_until_async,
)
from agentbox_testkit.fault_proxy import FaultProxy
from support.bridge_box import bridge, stdio
from support.served_agents import HostLab, HostStore, ServedAgents

from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterTimeout, SlotUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOKEN_VARIABLE = "PEER_TOKEN"


def forwarded(served):
    """The class, not open, with a token that has the scopes of agents and no more."""
    command = bridge("--url", served.url, "--token-env", TOKEN_VARIABLE)
    return stdio(served.host.paths, *command, env={TOKEN_VARIABLE: served.token})


async def opened(served):
    adapter = forwarded(served)
    await adapter.open(Deadline.after(30))
    return adapter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    made = ServedAgents(tmp_path_factory.mktemp("host"))
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(served):
    """One child for all tests, and another after it was lost."""
    kept = []

    async def usable():
        await served.start()
        if kept and (await kept[0].health()).state != "ok":
            await kept.pop().close()
        if not kept:
            kept.append(await opened(served))
        return kept[0]

    yield usable
    for one in kept:
        await one.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(served):
    made = HostStore(served, forwarded)
    await made.start()
    yield made
    await made.end()


@pytest_asyncio.fixture(loop_scope="module")
async def adapter(shared):
    return await shared()


@pytest_asyncio.fixture(loop_scope="module")
async def lab(tmp_path):
    made = HostLab(tmp_path, opened)
    yield made
    await made.close()


@pytest.mark.sampled(2)  # of what depends on the way: both halves of this one run it whole
@pytest.mark.transport
class TestForwarded(OrchestratorContract):
    pass


@pytest_asyncio.fixture(loop_scope="module")
async def relayed(served):
    """The class behind a relay that breaks connections between the bridge and the host."""
    await served.start()
    async with FaultProxy(served.plan.api.port) as relay:
        command = bridge("--url", relay.url, "--token-env", TOKEN_VARIABLE)
        adapter = stdio(served.host.paths, *command, env={TOKEN_VARIABLE: served.token})
        await adapter.open(Deadline.after(30))
        yield relay, adapter
        await adapter.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "faults", [{"lose": 2}, {"lose": 1, "refuse": 1}, {"truncate": 2}, {"duplicate": 1}]
)
async def test_O04_one_request_makes_one_process_whatever_becomes_of_replies(relayed, faults):
    """A reply that is lost, truncated or requested twice, and a connection that ends: still one
    process, with its handle."""
    relay, adapter = relayed
    needle = f"9{time.time_ns() % 10**12}"
    for name, count in faults.items():
        setattr(relay, name, count)
    handle = await adapter.spawn(spec("sleep", needle), request_id=needle)
    assert [getattr(relay, name) for name in faults] == [0] * len(faults)
    assert len(running_pids(needle)) == 1
    assert await adapter.spawn(spec("sleep", needle), request_id=needle) == handle
    assert (await adapter.terminate(handle, grace_s=0)).reason == "terminated"
    assert running_pids(needle) == []


async def test_O08_a_stream_goes_on_across_broken_connections(relayed):
    """Cut again and again on its way, it has every line once and in order, and ends with the exit."""
    relay, adapter = relayed
    handle = await adapter.spawn(
        shell("for i in $(seq 60); do echo $i; sleep 0.02; done"), request_id=new_id()
    )
    found = []
    async for item in adapter.stream(handle.agent_id):
        found.append(item)
        if len(found) in (10, 30):
            relay.truncate = 1
    assert output(found).split() == [b"%d" % n for n in range(1, 61)]
    assert [item.cursor for item in found] == sorted({item.cursor for item in found})
    assert (found[-1].kind, relay.truncate) == ("exit", 0)


@pytest.mark.timed
async def test_O17_a_slow_host_costs_the_caller_its_deadline_and_no_more(served):
    """AdapterTimeout in time; the other calls and the next one are answered."""
    await served.start()
    async with FaultProxy(served.plan.api.port) as relay:
        command = bridge("--url", relay.url, "--token-env", TOKEN_VARIABLE)
        adapter = stdio(
            served.host.paths, *command, env={TOKEN_VARIABLE: served.token}, timeout_seconds=1
        )
        await adapter.open(Deadline.after(30))
        relay.slow = 5
        began = time.monotonic()
        with pytest.raises(AdapterTimeout):
            await adapter.list()
        assert time.monotonic() - began < 3
        relay.slow = 0
        assert (await adapter.list(limit=1)).items is not None
        await adapter.close()


async def test_O17_a_killed_bridge_fails_its_waiters_and_leaves_the_hosts_agents(served):
    """Under load: each of 20 callers gets SlotUnavailable, the agents of the host run on, and a new child finds them."""
    await served.start()
    adapter, needle = await opened(served), f"9{time.time_ns() % 10**12}"
    handles = [
        await adapter.spawn(spec("sleep", needle), request_id=f"{needle}-{n}") for n in range(5)
    ]
    waiting = [asyncio.create_task(items(adapter, handles[n % 5].agent_id)) for n in range(20)]
    await wait_until_async(lambda: _all_read(adapter), "they wait")
    os.kill(adapter.pid, signal.SIGKILL)
    for found in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(found, SlotUnavailable)
    assert len(running_pids(needle)) == 5
    await adapter.close()
    again = await opened(served)
    for handle in handles:
        await again.terminate(handle, grace_s=0)
    await again.close()


async def _all_read(adapter):
    """Twenty streams are open."""
    return len(adapter._client._subscriptions) == 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "env", "why"),
    [
        (("--url", "http://10.0.0.1:9090"), {}, "loopback"),
        (("--url", "ftp://127.0.0.1"), {}, "http"),
        (("--url", "http://127.0.0.1:1"), {}, "reach"),
        (("--url", "{url}"), {TOKEN_VARIABLE: "abx_wrong"}, "token"),
        (("--url", "{url}", "--token-file", "/no/such/file"), {}, "token file"),
    ],
)
async def test_O16_a_bridge_that_cannot_forward_leaves_with_a_sentence(
    served, capfd, words, env, why
):
    """Plain http to another machine, no address, no server, a wrong token: the slot is unavailable,
    and the log reports why."""
    await served.start()
    named = ("--token-env", TOKEN_VARIABLE) if env else ()
    command = bridge(*(word.replace("{url}", served.url) for word in words), *named)
    adapter = stdio(served.host.paths, *command, env=env)
    with pytest.raises(SlotUnavailable):
        await adapter.open(Deadline.after(30))
    told = capfd.readouterr().out
    assert why in told
    assert "abx_wrong" not in told
