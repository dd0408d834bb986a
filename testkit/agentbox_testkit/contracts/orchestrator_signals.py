"""Clauses O6 and O7: the whole tree is ended, stopped and signalled."""

import asyncio
import time

import pytest

from agentbox.contracts.orchestrator import AgentHandle, Orchestrator
from agentbox.core.slot_errors import (
    InvalidTransition,
    NotFound,
    StaleHandle,
)
from agentbox_testkit.contracts.common import transport
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    first_output,
    is_alive,
    items,
    new_id,
    output,
    running_pids,
    shell,
    spec,
    wait_until_async,
)
from agentbox_testkit.wait import wait_until


class SignalClauses:
    """Uses the fixture `adapter`, open."""

    async def test_O06_terminate_ends_the_whole_tree(self, adapter: Orchestrator) -> None:
        """Double-forked, re-sessioned and TERM-ignoring descendants have ended when `terminate`
        returns.
        """
        needle = f"2{time.time_ns() % 10**12}"
        script = (
            f"(setsid sleep {needle} &); (trap '' TERM; setsid sh -c \"trap '' TERM; sleep "
            f'{needle}; sleep {needle}" &);'
            f" sleep {needle} & echo up; wait"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"up")
        await wait_until(lambda: len(running_pids(needle)) >= 4, "the process tree is running")
        start = time.monotonic()
        exit_info = await adapter.terminate(handle, grace_s=0.3)
        assert time.monotonic() - start < 5.3
        assert running_pids(needle) == []
        assert await adapter.terminate(handle) == exit_info

    async def test_O06_grace_is_given(self, adapter: Orchestrator) -> None:
        """A program that cleans up within the grace period ends with its own code, and its last
        output is kept.
        """
        script = "trap 'sleep 0.2; echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done"
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"up")
        exit_info = await adapter.terminate(handle, grace_s=5)
        assert (exit_info.code, exit_info.reason) == (9, "terminated")
        assert output(await items(adapter, handle.agent_id)).endswith(b"bye\n")

    @transport
    async def test_O07_unknown_and_stale_handles_are_refused(self, adapter: Orchestrator) -> None:
        """Another generation is StaleHandle with the current one, another agent NotFound, in each
        call.
        """
        handle = await adapter.spawn(spec(*FOREVER, stdin="pipe"), request_id=new_id())
        stale = AgentHandle(agent_id=handle.agent_id, generation=handle.generation + 1)
        unknown = AgentHandle(agent_id=new_id(), generation=1)
        for bad_handle, error in ((stale, StaleHandle), (unknown, NotFound)):
            with pytest.raises(error):
                await adapter.signal(bad_handle, "TERM")
            with pytest.raises(error):
                await adapter.terminate(bad_handle)
            with pytest.raises(error):
                await adapter.attach(bad_handle)
        with pytest.raises(NotFound):
            await adapter.get(unknown.agent_id)
        await adapter.terminate(handle)

    async def test_O07_stop_and_cont_act_on_the_tree(self, adapter: Orchestrator) -> None:
        """A stopped agent and its descendants make no progress; after CONT they continue."""
        script = (
            "setsid sh -c 'while :; do echo x; sleep 0.01; done' & while :; do sleep 0.01; done"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"x")
        await adapter.signal(handle, "STOP")
        pid = (await adapter.get(handle.agent_id)).pid
        assert pid is not None

        async def is_quiet() -> bool:
            before = len(await items(adapter, handle.agent_id, follow=False))
            await asyncio.sleep(0.3)  # enough for a running program to write thirty lines
            return len(await items(adapter, handle.agent_id, follow=False)) == before

        await wait_until_async(is_quiet, "buffered output has arrived and output has stopped")
        after = len(await items(adapter, handle.agent_id, follow=False))
        assert is_alive(pid)
        await adapter.signal(handle, "CONT")
        await wait_until_async(
            lambda: _has_grown(adapter, handle.agent_id, after), "output continues"
        )
        await adapter.terminate(handle)

    async def test_O07_signals_reach_the_program(self, adapter: Orchestrator) -> None:
        """Each allowed signal arrives unchanged; an ended agent cannot be signalled."""
        script = (
            'for s in INT HUP USR1 USR2; do trap "echo got $s" $s; done; '
            "echo up; while :; do sleep 0.01; done"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"up")
        for name in ("INT", "HUP", "USR1", "USR2"):
            await adapter.signal(handle, name)
            await first_output(adapter, handle, f"got {name}".encode())
        await adapter.terminate(handle, grace_s=0)
        with pytest.raises(InvalidTransition):
            await adapter.signal(handle, "INT")


async def _has_grown(adapter: Orchestrator, agent_id: str, beyond: int) -> bool:
    return len(await items(adapter, agent_id, follow=False)) > beyond + 3
