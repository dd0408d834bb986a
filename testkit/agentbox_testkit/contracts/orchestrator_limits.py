"""Clause O14: limits."""

import asyncio
from typing import Any

import pytest

from agentbox.adapters.runtime import context
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.core.slot_errors import (
    InvalidTransition,
    NotFound,
    QuotaExceeded,
    ValidationError,
)
from agentbox_testkit.contracts.common import expect_error
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    Lab,
    documents,
    items,
    limits,
    new_id,
    output,
    shell,
    spec,
    wait_ended,
)

MIB = 1 << 20

SOMEONE = context.CallContext(principal="urn:someone")


class LimitClauses:
    """Uses the fixtures `adapter`, open, and `lab`, not started."""

    async def test_O14_the_number_of_agents_is_bounded(self, lab: Lab) -> None:
        """More than `max_agents` is QuotaExceeded with the key; an exit frees a place."""
        adapter = await lab.start(options={"max_agents": 2})
        handles = [await adapter.spawn(spec(*FOREVER), request_id=new_id()) for _ in range(2)]
        with pytest.raises(QuotaExceeded) as caught:
            await adapter.spawn(spec(*FOREVER), request_id=new_id())
        assert caught.value.members["config_path"] == "adapters.orchestrator.max_agents"
        await adapter.terminate(handles[0])
        await adapter.spawn(spec(*FOREVER), request_id=new_id())

    async def test_O14_the_depth_is_bounded(self, lab: Lab) -> None:
        """A chain of parents longer than `max_depth` is QuotaExceeded; an unknown or ended parent
        is rejected.
        """
        adapter = await lab.start(options={"max_depth": 2})
        parent: str | None = None
        for _ in range(3):
            parent = (
                await adapter.spawn(spec(*FOREVER, parent_id=parent), request_id=new_id())
            ).agent_id
        with pytest.raises(QuotaExceeded) as caught:
            await adapter.spawn(spec(*FOREVER, parent_id=parent), request_id=new_id())
        assert caught.value.members["limit"] == "max_depth"
        with pytest.raises(NotFound):
            await adapter.spawn(spec("true", parent_id=new_id()), request_id=new_id())
        finished = await adapter.spawn(spec("true"), request_id=new_id())
        await wait_ended(adapter, finished.agent_id)
        with pytest.raises(InvalidTransition):
            await adapter.spawn(spec("true", parent_id=finished.agent_id), request_id=new_id())

    @pytest.mark.parametrize(
        ("name", "value"),
        [("memory", 2048 * MIB), ("cpu", 2.0), ("pids", 129), ("fds", 1025), ("stdout", 2 * MIB)],
    )
    async def test_O14_limits_are_only_lowered(
        self, adapter: Orchestrator, name: str, value: float
    ) -> None:
        """A limit above the manifest's is QuotaExceeded with its key; an admin may raise it, unless
        the limits belong to a remote host (`limits.raise`); 0 is invalid.
        """
        raised = spec("true", limits=limits(**{name: value}))
        with context.as_caller(SOMEONE), pytest.raises(QuotaExceeded) as caught:
            await adapter.spawn(raised, request_id=new_id())
        assert caught.value.members == {
            "limit": name,
            "observed": value,
            "cap": caught.value.members["cap"],
            "config_path": f"limits.{name}",
        }
        with context.as_caller(
            context.CallContext(principal="urn:operator", scopes=frozenset({"admin"}))
        ):
            if "limits.raise" in adapter.capabilities:
                await adapter.spawn(raised, request_id=new_id())
            else:
                await expect_error(QuotaExceeded, adapter.spawn(raised, request_id=new_id()))
        with pytest.raises(ValidationError):
            await adapter.spawn(
                spec("true", limits=limits(**{name: type(value)(0)})), request_id=new_id()
            )

    async def test_O14_a_breach_ends_the_tree(self, adapter: Orchestrator) -> None:
        """Reason `limit`, state `failed`, and a `state` item with observed value, cap and key."""
        script = (
            "for i in 1 2 3 4; do "
            "head -c 30000000 /dev/zero | tail -c 30000000 | sleep 30 & done; wait"
        )
        handle = await adapter.spawn(
            shell(script, limits=limits(memory=64 * MIB)), request_id=new_id()
        )
        async with asyncio.timeout(20):
            stream_items = await items(adapter, handle.agent_id)
        info = await adapter.get(handle.agent_id)
        assert info.exit is not None
        assert (info.state, info.exit.reason) == ("failed", "limit")
        (breach,) = [
            document for document in documents(stream_items) if document["state"] == "limit"
        ]
        assert (breach["limit"], breach["config_path"]) == ("memory", "limits.memory")
        assert breach["observed"] > breach["cap"] == 64 * MIB
        usage: Any = info.limits["memory"]
        assert usage["peak"] >= breach["observed"] > usage["cap"]

    async def test_O14_no_process_beyond_the_limit(self, adapter: Orchestrator) -> None:
        """The fork beyond the limit fails; the program decides what follows, here its own end."""
        script = "sleep 0.6; for i in $(seq 200); do sleep 30 & done; wait"
        handle = await adapter.spawn(shell(script, limits=limits(pids=20)), request_id=new_id())
        async with asyncio.timeout(20):
            stream_items = await items(adapter, handle.agent_id)
        info = await adapter.get(handle.agent_id)
        assert info.exit is not None
        assert (info.exit.reason, info.exit.code) == ("exit", 2)
        assert not [
            document for document in documents(stream_items) if document["state"] == "limit"
        ]
        usage: Any = info.limits["pids"]
        assert usage["peak"] <= usage["cap"] == 20

    async def test_O14_limits_reach_the_kernel(self, adapter: Orchestrator) -> None:
        """Open files, data and file size are hard limits of the process; an endless agent ends at
        its wall clock limit.
        """
        requested = limits(fds=64, memory=512 * MIB, branch_disk=MIB, wall_seconds=2)
        script = (
            "cd $TMPDIR; ulimit -Hn; ulimit -Hd; "
            "head -c 2000000 /dev/zero > big; stat -c %s big; exec sleep 1000"
        )
        handle = await adapter.spawn(shell(script, limits=requested), request_id=new_id())
        stream_items = await items(adapter, handle.agent_id)
        assert output(stream_items).split() == [b"64", b"524288", b"1048576"]
        info = await adapter.get(handle.agent_id)
        assert info.exit is not None
        assert (info.exit.reason, info.state) == ("timeout", "failed")
