"""What the orchestrator suite requires of an implementation's test file, and small helpers."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.orchestrator import AgentHandle, AgentSpec, Limits, Orchestrator, StreamItem
from agentbox.core.ids import uuid7
from agentbox.sandbox.launcher import tree
from agentbox_testkit.wait import pause

FOREVER = ("sleep", "100000")
_TIMEOUT_SECONDS = 15.0


class Lab(Protocol):
    """A backend for one test. `adapter` is open after `start` and after `restart`."""

    adapter: Orchestrator
    run_counts: tuple[int, int]  # runs for warming up, and measured runs

    @property
    def root_pid(self) -> int:
        """The ancestor of all agent processes."""
        ...

    @property
    def workspace(self) -> Path: ...

    async def start(
        self,
        *,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        scale: float = 1,
    ) -> Orchestrator:
        """`scale` divides restart delays."""
        ...

    async def disconnect(self) -> None:
        """Closes the adapter, like a disconnecting caller; the backend keeps running."""
        ...

    async def crash(self) -> None:
        """Sends SIGKILL to the backend."""
        ...

    async def restart(self) -> Orchestrator:
        """Restarts the killed backend and opens a new adapter."""
        ...

    async def record(self, count: int, *, acknowledge: bool = True) -> list[LifecycleRecord]:
        """Return the next `count` lines of the record; `acknowledge` removes them."""
        ...


def spec(*argv: str, **more: Any) -> AgentSpec:
    """Return an agent of the default profile."""
    return AgentSpec(**{"name": "test", "argv": argv, "profile": "sandboxed", **more})


def shell(script: str, **more: Any) -> AgentSpec:
    """Return an agent that is a shell script."""
    return spec("sh", "-c", script, **more)


def limits(**values: Any) -> Limits:
    return Limits(**values)


def new_id() -> str:
    return uuid7()


async def wait_until_async(
    condition: Callable[[], Awaitable[bool]], description: str, seconds: float = _TIMEOUT_SECONDS
) -> None:
    """Wait until the condition is true. AssertionError after the deadline."""
    deadline = time.monotonic() + seconds
    started = time.monotonic()
    while not await condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {description}"
        await asyncio.sleep(pause(started, 0.01))
        started = time.monotonic()


async def items(
    adapter: Orchestrator, agent_id: str, since: int = 0, *, follow: bool = True
) -> list[StreamItem]:
    """Return the stream to its end."""
    return [item async for item in adapter.stream(agent_id, since=since, follow=follow)]


def output(stream_items: list[StreamItem], kind: str = "stdout") -> bytes:
    return b"".join(item.data for item in stream_items if item.kind == kind)


def documents(stream_items: list[StreamItem], kind: str = "state") -> list[dict[str, Any]]:
    """Return the documents of `state` or `exit` items."""
    return [json.loads(item.data) for item in stream_items if item.kind == kind]


async def first_output(adapter: Orchestrator, handle: AgentHandle, pattern: bytes) -> StreamItem:
    """Wait for stdout that contains `pattern`."""
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        async for item in adapter.stream(handle.agent_id):
            if item.kind == "stdout" and pattern in item.data:
                return item
    raise AssertionError(f"the agent ended without {pattern!r}")


async def wait_ended(adapter: Orchestrator, agent_id: str) -> None:
    """Wait until the agent has ended."""
    await wait_until_async(lambda: _has_ended(adapter, agent_id), "the agent ends")


async def _has_ended(adapter: Orchestrator, agent_id: str) -> bool:
    return (await adapter.get(agent_id)).state in ("exited", "failed", "lost")


def is_alive(pid: int) -> bool:
    """True for a running process; false for a zombie."""
    row = tree.read_process(pid)
    return row is not None and row.state not in "ZX"


def running_pids(needle: str) -> list[int]:
    """Return processes whose command line contains `needle`."""
    pids = []
    for row in tree.scan().values():
        try:
            line = Path(f"/proc/{row.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if needle.encode() in line and row.state not in "ZX":
            pids.append(row.pid)
    return pids


def ancestors(pid: int) -> list[int]:
    """Return the parents up to PID 1 of this namespace."""
    pids: list[int] = []
    row = tree.read_process(pid)
    while row is not None and row.parent:
        pids.append(row.parent)
        row = tree.read_process(row.parent)
    return pids
