"""Clauses O11, O13 and O15: restarts, crashes, the record."""

import signal
import time

import pytest

from agentbox.contracts.orchestrator import Orchestrator
from agentbox.core.slot_errors import (
    InvalidTransition,
    StaleHandle,
)
from agentbox.sandbox.launcher import tree
from agentbox_testkit.contracts.common import transport
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    Lab,
    documents,
    first_output,
    items,
    new_id,
    output,
    running_pids,
    shell,
    spec,
    wait_ended,
    wait_until_async,
)
from agentbox_testkit.wait import wait_until


class LifecycleClauses:
    """Uses the fixtures `adapter`, open, and `lab`, not started."""

    async def test_O11_a_failing_agent_is_started_five_times_again(self, lab: Lab) -> None:
        """Delays double from 1 s; the 6th restart within 300 s ends in `failed`. The id stays, the
        generation grows.
        """
        adapter = await lab.start(scale=100)
        handle = await adapter.spawn(
            shell("echo life; exit 3", restart="on-failure"), request_id=new_id()
        )
        stream_items = await items(adapter, handle.agent_id)
        info = await adapter.get(handle.agent_id)
        assert [
            document["seconds"]
            for document in documents(stream_items)
            if document["state"] == "backoff"
        ] == [1, 2, 4, 8, 16]
        assert (info.state, info.restarts, info.handle.generation) == ("failed", 5, 6)
        assert info.exit is not None
        assert (info.exit.reason, info.exit.code) == ("restart-intensity", 3)
        assert output(stream_items) == b"life\n" * 6
        assert [item.generation for item in stream_items if item.kind == "stdout"] == [
            1,
            2,
            3,
            4,
            5,
            6,
        ]

    async def test_O11_the_policy_decides(self, lab: Lab) -> None:
        """`never` never, `on-failure` not after 0, `always` after 0 too; a requested stop is
        final.
        """
        adapter = await lab.start(scale=100)
        for script, policy in (("exit 3", "never"), ("exit 0", "on-failure")):
            handle = await adapter.spawn(shell(script, restart=policy), request_id=new_id())
            await items(adapter, handle.agent_id)
            assert (await adapter.get(handle.agent_id)).restarts == 0
        handle = await adapter.spawn(shell("exit 0", restart="always"), request_id=new_id())
        await items(adapter, handle.agent_id)
        assert (await adapter.get(handle.agent_id)).restarts == 5
        handle = await adapter.spawn(spec(*FOREVER, restart="always"), request_id=new_id())
        await adapter.terminate(handle)
        assert (await adapter.get(handle.agent_id)).state == "exited"

    async def test_O11_an_agent_that_waits_can_be_stopped(self, lab: Lab) -> None:
        """`terminate` during the delay ends it as `terminated`; the old generation is stale after a
        restart.
        """
        adapter = await lab.start(scale=1)
        handle = await adapter.spawn(shell("exit 3", restart="always"), request_id=new_id())
        await wait_until_async(
            lambda: _state(adapter, handle.agent_id, "backoff"), "the agent is in backoff"
        )
        with pytest.raises(InvalidTransition):
            await adapter.signal(handle, "TERM")
        assert (await adapter.terminate(handle)).reason == "terminated"
        handle = await adapter.spawn(shell("exit 3", restart="always"), request_id=new_id())
        await wait_until_async(
            lambda: _generation(adapter, handle.agent_id, 2), "the agent is restarted"
        )
        with pytest.raises(StaleHandle):
            await adapter.terminate(handle)

    @transport
    async def test_O13_a_caller_that_goes_away_ends_no_agent(self, lab: Lab) -> None:
        """Output written without a connection is available to the next caller from its cursor.
        Agents that are not `detached` end with their caller, completely, and their output is kept.
        """
        adapter = await lab.start()
        needle = f"7{time.time_ns() % 10**12}"
        handle = await adapter.spawn(
            shell(f"while :; do echo x; sleep 0.01; done; {needle}"), request_id=new_id()
        )
        first_item = await first_output(adapter, handle, b"x")
        await lab.disconnect()
        detached = "detached" in adapter.capabilities
        reopened = await lab.restart()
        if detached:
            await wait_until_async(
                lambda: _output_beyond(reopened, handle.agent_id, first_item.cursor),
                "output continued",
            )
        cursors = [
            item.cursor
            for item in await items(reopened, handle.agent_id, first_item.cursor, follow=False)
        ]
        assert cursors == list(range(first_item.cursor + 1, first_item.cursor + 1 + len(cursors)))
        info = await reopened.get(handle.agent_id)
        assert (info.state, bool(running_pids(needle))) == (
            ("running", True) if detached else ("exited", False)
        )

    async def test_O13_a_crash_of_the_backend_leaves_no_orphan(self, lab: Lab) -> None:
        """After SIGKILL of the backend every process of every tree ends, double-forked ones too;
        the row is `lost`.
        """
        adapter = await lab.start()
        needle = f"5{time.time_ns() % 10**12}"
        script = (
            f"(setsid sh -c \"trap '' TERM HUP INT; sleep {needle}\" &); echo kept; sleep {needle}"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"kept")
        await wait_until(lambda: len(running_pids(needle)) >= 3, "the process tree is running")
        await lab.crash()
        await wait_until(lambda: not running_pids(needle), "no orphan process remains", seconds=5)
        reopened = await lab.restart()
        await wait_ended(reopened, handle.agent_id)
        info = await reopened.get(handle.agent_id)
        assert info.exit is not None
        assert (info.state, info.exit.reason, info.exit.code, info.exit.signal) == (
            "lost",
            "lost",
            None,
            None,
        )
        stream_items = await items(reopened, handle.agent_id)
        assert output(stream_items) == b"kept\n"
        assert [item.kind for item in stream_items[-2:]] == ["state", "exit"]

    async def test_O13_leftovers_of_killed_keepers_are_ended_at_the_next_start(
        self, lab: Lab
    ) -> None:
        """Backend, launcher and reaper are killed at once: surviving processes end before the next
        start responds.
        """
        adapter = await lab.start()
        needle = f"6{time.time_ns() % 10**12}"
        handle = await adapter.spawn(
            shell(f"(setsid sleep {needle} &); echo up; sleep {needle}"), request_id=new_id()
        )
        await first_output(adapter, handle, b"up")
        await wait_until(lambda: len(running_pids(needle)) == 3, "the process tree is running")
        pids = [
            row.pid
            for row in tree.descendants(tree.scan(), [lab.root_pid])
            if row.pid not in running_pids(needle)
        ]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                tree.signal_process(pid, number)  # a disk scanner ends with its parent
            if number == signal.SIGSTOP:
                await lab.crash()
        assert running_pids(needle)
        reopened = await lab.restart()
        assert running_pids(needle) == []
        await wait_until_async(
            lambda: _state(reopened, handle.agent_id, "lost"), "the agent is lost"
        )

    async def test_O13_the_policy_applies_to_a_lost_agent(self, lab: Lab) -> None:
        """An agent with a restart policy runs again after the crash, as its next generation."""
        adapter = await lab.start(scale=100)
        handle = await adapter.spawn(spec(*FOREVER, restart="on-failure"), request_id=new_id())
        first = (await adapter.get(handle.agent_id)).pid
        await lab.crash()
        reopened = await lab.restart()
        await wait_until_async(
            lambda: _state(reopened, handle.agent_id, "running"), "the agent is running again"
        )
        info = await reopened.get(handle.agent_id)
        assert (info.handle.generation, info.restarts) == (2, 1)
        assert info.pid != first

    @transport
    async def test_O15_the_record_is_ordered_and_taken_once(self, lab: Lab) -> None:
        """Starts, restarts, ends and losses are in order, once each, also those without a connected
        reader; after a reader failed, the same lines with the same ids are returned again.
        """
        adapter = await lab.start(scale=100)
        handle = await adapter.spawn(shell("exit 3", restart="on-failure"), request_id=new_id())
        await wait_ended(adapter, handle.agent_id)
        lost = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        first = await lab.record(10 + 3, acknowledge=False)
        await lab.crash()
        await lab.restart()
        lines = await lab.record(10 + 4)
        assert lines[: len(first)] == first
        own_lines = [line for line in lines if line.agent_id == handle.agent_id]
        assert [line.type for line in own_lines] == [
            "agent.started",
            "agent.exited",
            *["agent.restarted", "agent.exited"] * 5,
        ]
        assert [line.type for line in lines if line.agent_id == lost.agent_id] == [
            "agent.started",
            "agent.lost",
        ]
        assert len({line.id for line in lines}) == len(lines)
        assert own_lines[-1].data["state"] == "failed"
        finished = await lab.adapter.spawn(spec("true"), request_id=new_id())
        assert {line.agent_id for line in await lab.record(2)} == {finished.agent_id}


async def _state(adapter: Orchestrator, agent_id: str, expected: str) -> bool:
    return (await adapter.get(agent_id)).state == expected


async def _generation(adapter: Orchestrator, agent_id: str, expected: int) -> bool:
    return (await adapter.get(agent_id)).handle.generation == expected


async def _output_beyond(adapter: Orchestrator, agent_id: str, cursor: int) -> bool:
    return len(await items(adapter, agent_id, cursor, follow=False)) > 5
