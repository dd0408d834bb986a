"""Clauses O16 to O18: the child of external-stdio and its pipes, with the bridge that ships and with one that misbehaves."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.contracts.orchestrator_lab import is_alive, running_pids, shell, spec
from agentbox_testkit.wait import wait_until
from support import tables
from support.bridge_box import BridgeBox, stdio

from agentbox.adapters.runtime.adapter import SLOTS, Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots
from agentbox.contracts.orchestrator import CONTRACT_VERSION
from agentbox.core.deadline import Deadline
from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.core.slot_errors import (
    AdapterTimeout,
    BackendError,
    ContractMismatch,
    NotFound,
    SlotUnavailable,
)
from agentbox.manifest.declarations.options import Options
from agentbox.policy.redaction.redactor import build_redactor
from agentbox.sandbox.monitor.cpu_priority import AUTOGROUPS
from agentbox.sandbox.spec import AGENT_NICE

ODD = Path(__file__).parents[1] / "peers" / "odd_bridge.py"


@pytest.fixture
async def odd(tmp_path):
    """Opens the class on a child that behaves as these words say."""
    made = []

    async def opened(*words: str, **options: Any) -> Any:
        metrics = Metrics()
        adapter = stdio(
            BridgeBox(tmp_path).paths,
            sys.executable,
            "-I",
            str(ODD),
            *words,
            metrics=metrics,
            **options,
        )
        made.append(adapter)
        await adapter.open(Deadline.after(10))
        adapter.dropped = lambda: metrics.registry.get_sample_value(
            "agentbox_orchestrator_dropped_replies_total"
        )
        return adapter

    yield opened
    for one in made:
        await one.close()


@pytest.fixture
def box(tmp_path):
    return BridgeBox(tmp_path)


@pytest.fixture
async def one(box):
    made = await box.open()
    yield made
    await made.close()


@pytest.mark.parametrize("act", ["garbage", "no-object", "bad-error", "long", "leave"])
async def test_O17_a_child_that_says_no_message_is_ended(odd, act):
    """All its waiting calls fail with typed errors; the process has exited, and the instance
    reports it."""
    adapter = await odd(f"agent.get={act}", "agent.list=never")
    pid, waiting = adapter.pid, asyncio.create_task(adapter.list())
    await asyncio.sleep(0)
    for call in (adapter.get("x"), waiting):
        with pytest.raises(SlotUnavailable):
            await call
    await wait_until(lambda: not is_alive(pid), "the child is ended")
    assert (await adapter.health()).state == "down"


async def test_O17_replies_match_by_id_in_any_order(odd):
    """Three calls at once, answered backwards: each gets its own."""
    adapter = await odd("agent.get=backwards")
    found = await asyncio.gather(*(adapter.get(str(n)) for n in range(3)), return_exceptions=True)
    ids = [one.members["id"] for one in found]
    assert all(isinstance(one, NotFound) for one in found)
    assert ids == sorted(ids, key=int)
    assert len(set(ids)) == 3


@pytest.mark.parametrize(("act", "count"), [("twice", 1), ("unknown", 2)])
async def test_O17_what_nobody_waits_for_is_counted_and_dropped(odd, act, count):
    """A repeated reply, or one that belongs to no call, changes nothing."""
    adapter = await odd(f"agent.get={act}")
    with pytest.raises(NotFound):
        await adapter.get("x")
    assert (await adapter.health()).state == "ok"
    assert adapter.dropped() == count


async def test_O17_a_deadline_cancels_and_a_late_reply_is_dropped(odd, capfd):
    """AdapterTimeout names the deadline, the child gets `$/cancel` with the id, and its late reply
    is counted."""
    adapter = await odd("agent.get=never", timeout_seconds=0.2)
    with pytest.raises(AdapterTimeout) as caught:
        await adapter.get("x")
    assert caught.value.members["method"] == "get"
    assert 100 < caught.value.members["deadline_ms"] <= 200
    await wait_until(lambda: adapter.dropped() == 1, "the late reply came")
    assert (await adapter.health()).state == "ok"
    await adapter.close()
    heard = capfd.readouterr().out
    assert "$/cancel" in heard
    assert "deadline_ms" in heard


async def test_O18_an_answer_of_another_shape_is_a_backend_error(odd):
    """It is the child's fault, not the caller's."""
    adapter = await odd("agent.get=odd", "agent.list=odd", "agent.signal=never")
    for call in (adapter.get("x"), adapter.list()):
        with pytest.raises(BackendError):
            await call


async def test_O18_another_major_version_is_refused(odd):
    """ContractMismatch with both versions; no child remains."""
    with pytest.raises(ContractMismatch) as caught:
        await odd("initialize=version")
    assert caught.value.members["mismatches"] == [
        {"slot": "orchestrator", "ours": CONTRACT_VERSION, "theirs": "2.0.0"}
    ]


async def test_O16_a_command_that_does_not_start_is_told(tmp_path):
    """The slot is unavailable, and the sentence names the program."""
    adapter = stdio(BridgeBox(tmp_path).paths, "/no/such/bridge")
    with pytest.raises(SlotUnavailable, match="/no/such/bridge"):
        await adapter.open(Deadline.after(5))


async def test_O16_no_output_of_an_agent_is_a_message(one):
    """An agent that prints messages on all its descriptors, and leaves a process behind that does,
    changes nothing; the child inherits the variables that the manifest passes, and no others."""
    adapter = one
    forged = json.dumps(
        {"jsonrpc": "2.0", "id": 2, "result": {"agent_id": "forged", "generation": 9}}
    )
    script = f"for i in 1 2 3; do echo '{forged}'; echo '{forged}' >&2; echo '{forged}' > /proc/$PPID/fd/1; done"
    run = await adapter.run_once(shell(script), request_id="forger")
    assert run.stdout.count(b"forged") == 3
    handle = await adapter.spawn(shell("exit 0"), request_id="after")
    assert handle.agent_id != "forged"
    environment = Path(f"/proc/{adapter.pid}/environ").read_bytes().split(b"\0")
    assert {item.partition(b"=")[0].decode() for item in environment if item} == {
        "PATH", "LANG", PREFIX_VARIABLE, "AGENTBOX_TEST_CLOCK_SCALE",
    }  # fmt: skip
    assert (
        Path(f"/proc/{adapter.pid}/fd/1").readlink() == Path(f"/proc/{adapter.pid}/fd/2").readlink()
    )


async def test_O16_the_bridge_has_the_priority_of_the_box_and_its_agents_have_not(one):
    """So that agents cannot delay the answers that a required slot waits for."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, one.pid) == own
    needle = f"9{time.time_ns() % 10**12}"
    await one.spawn(spec("sleep", needle), request_id="agent")
    (agent,) = running_pids(needle)
    assert os.getpriority(os.PRIO_PROCESS, agent) == max(own, AGENT_NICE)
    if AUTOGROUPS:
        session = Path(f"/proc/{one.pid}/autogroup").read_text()
        assert session.split()[-1] == "0"


async def test_O16_one_bridge_a_folder(box, one):
    """A second one exits with a message; the first continues to serve."""
    with pytest.raises(SlotUnavailable):
        await box.open()
    assert (await one.health()).state == "ok"


async def test_O16_the_slot_is_served_again_after_its_child_was_killed(tmp_path):
    """Under load: every waiting call fails with a typed error, the slot is down at once, and after
    a second or more it is served again, by the same container; what the first child started has
    exited."""
    box = BridgeBox(tmp_path)
    container = Slots(
        {slot: SlotConfig(slot=slot, use="off", required=False, paths=box.paths, options=Options()) for slot in SLOTS}
        | {"orchestrator": box.make().cfg}, Deps(metrics=Metrics()), build_redactor(tables.privacy()),
    )  # fmt: skip
    await container.start()
    needle = f"8{time.time_ns() % 10**12}"
    try:
        child = container._lifecycles["orchestrator"].serving
        await container.orchestrator.spawn(spec("sleep", needle), request_id="one")
        calls = [
            asyncio.create_task(
                container.orchestrator.run_once(spec("sleep", needle), request_id=f"{n}")
            )
            for n in range(20)
        ]
        await wait_until(lambda: len(running_pids(needle)) == 21, "all run", seconds=20)
        os.kill(child.pid, signal.SIGKILL)
        died = time.monotonic()
        for found in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(found, SlotUnavailable)
        await wait_until(
            lambda: container.status()["orchestrator"].state == "down", "the slot is down"
        )
        await wait_until(
            lambda: container.status()["orchestrator"].state == "ok",
            "the slot is served again",
            seconds=20,
        )
        assert time.monotonic() - died >= 1
        assert running_pids(needle) == []
        assert {info.state for info in (await container.orchestrator.list()).items} == {"lost"}
        assert (
            await container.orchestrator.run_once(shell("exit 4"), request_id="again")
        ).exit.code == 4
    finally:
        await container.stop()
