"""The contract suite of the orchestrator slot."""

import asyncio
from typing import Any

from agentbox.contracts.orchestrator import AgentFilter, AgentHandle, Orchestrator
from agentbox.core.slot_errors import SlotUnavailable, ValidationError
from agentbox_testkit.contracts.common import CommonContract, expect_error, transport
from agentbox_testkit.contracts.orchestrator_lab import items, new_id, shell, spec
from agentbox_testkit.contracts.orchestrator_leaks import LeakClause
from agentbox_testkit.contracts.orchestrator_lifecycle import LifecycleClauses
from agentbox_testkit.contracts.orchestrator_limits import LimitClauses
from agentbox_testkit.contracts.orchestrator_process import ProcessClauses
from agentbox_testkit.contracts.orchestrator_rights import RightsClauses
from agentbox_testkit.contracts.orchestrator_runs import RunClauses
from agentbox_testkit.contracts.orchestrator_signals import SignalClauses
from agentbox_testkit.contracts.orchestrator_stream import StreamClauses

_HANDLE = AgentHandle(agent_id="01938f5e-0000-7000-8000-000000000000", generation=1)


class OrchestratorContract(
    ProcessClauses,
    SignalClauses,
    StreamClauses,
    RunClauses,
    LifecycleClauses,
    LimitClauses,
    LeakClause,
    RightsClauses,
    CommonContract,
):
    """The test file of an implementation defines the fixtures `adapter` (open), `lab` (a backend
    for one test) and `store` (makes and opens adapters on a backend that it can kill).
    """

    contract = Orchestrator
    calls = {  # noqa: RUF012 - the base declares it ClassVar
        "spawn": ((spec("true"),), {"request_id": "r"}),
        "list": ((), {}),
        "get": ((_HANDLE.agent_id,), {}),
        "signal": ((_HANDLE, "TERM"), {}),
        "revoke": ((_HANDLE.agent_id, "g_none"), {}),
        "terminate": ((_HANDLE,), {}),
        "stream": ((_HANDLE.agent_id,), {}),
        "attach": ((_HANDLE,), {}),
        "run_once": ((spec("true"),), {"request_id": "r"}),
    }

    async def use(self, adapter: Any) -> list[Any]:
        handle = await adapter.spawn(shell("echo x"), request_id=new_id())
        stream = await items(adapter, handle.agent_id)
        info = await adapter.get(handle.agent_id)
        run = await adapter.run_once(spec("true"), request_id=new_id())
        return [handle, *stream, info, await adapter.terminate(handle), run]

    @transport
    async def test_C05_a_cancelled_spawn_happens_or_does_not(self, adapter: Any) -> None:
        """After an immediate cancellation, the request id belongs to one agent, complete or
        absent.
        """
        request = new_id()
        call = asyncio.create_task(adapter.spawn(spec("true"), request_id=request))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        handle = await adapter.spawn(spec("true"), request_id=request)
        assert (await adapter.get(handle.agent_id)).exit is None or await items(
            adapter, handle.agent_id
        )

    @transport
    async def test_C06_pages_are_by_key(self, adapter: Any) -> None:
        """Existing agents are returned exactly once, whatever is spawned between the pages; invalid
        limits are rejected.
        """
        label = new_id()
        spawned = [
            await adapter.spawn(spec("true", labels={label: "1"}), request_id=new_id())
            for _ in range(5)
        ]
        filter = AgentFilter(label=label)
        listed, cursor = [], None
        while True:
            page = await adapter.list(filter, limit=2, cursor=cursor)
            listed += [info.handle for info in page.items]
            await adapter.spawn(spec("true"), request_id=new_id())
            if (cursor := page.next_cursor) is None:
                break
        assert listed == spawned
        for wrong in ({"limit": 0}, {"limit": 501}, {"cursor": "not a cursor"}):
            await expect_error(ValidationError, adapter.list(filter, **wrong))

    @transport
    async def test_C07_text_passes_unchanged(self, adapter: Any) -> None:
        """Any code point passes through arguments, environment and labels; NUL and lone surrogates
        are rejected.
        """
        text = "ä\u0301\U0001f600\n\t "
        run = await adapter.run_once(spec("printenv", "T", env={"T": text}), request_id=new_id())
        assert run.stdout.decode() == text + "\n"
        for wrong in ("a\0", "\ud800"):
            await expect_error(
                ValidationError, adapter.spawn(spec("echo", wrong), request_id=new_id())
            )
            await expect_error(
                ValidationError,
                adapter.spawn(spec("true", labels={"x": wrong}), request_id=new_id()),
            )

    async def test_C08_a_spawn_survives_a_crash_as_a_row(self, lab: Any) -> None:
        """An agent whose spawn returned is known after SIGKILL of the backend."""
        adapter = await lab.start()
        handle = await adapter.spawn(spec("true"), request_id=new_id())
        await lab.crash()
        assert (await (await lab.restart()).get(handle.agent_id)).handle.agent_id == handle.agent_id

    @transport
    async def test_C11_two_callers_side_by_side(self, store: Any) -> None:
        """32 tasks over two connections, or over the only one if agents are not `detached`: each
        agent is spawned once, ends with its own code, and all are listed.
        """
        first = second = await store.open()
        if "detached" in first.capabilities:
            second = await store.open()
        else:
            await expect_error(SlotUnavailable, store.open())
        codes = range(32)
        runs = await asyncio.gather(
            *(
                (first, second)[n % 2].run_once(shell(f"exit {n}"), request_id=f"c11-{n}")
                for n in codes
            )
        )
        assert [run.exit.code for run in runs] == list(codes)
