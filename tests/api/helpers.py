"""What the tests of the API share."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
from agentbox_testkit.wait import pause
from support.api_box import TOKEN, ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.client.agent_host.connection import connect
from agentbox.contracts.orchestrator import StreamItem
from agentbox.contracts.task_records import Task
from agentbox.core.deadline import Deadline


def spec(*argv: str, **more: Any) -> dict[str, Any]:
    """An AgentSpec on the wire."""
    return {"name": "test", "argv": list(argv), "profile": "sandboxed", **more}


def sh(script: str, **more: Any) -> dict[str, Any]:
    """A spec that runs a shell script."""
    return spec("/bin/sh", "-c", script, **more)


def read_all(client: BoxClient, task_id: str, **options: Any) -> tuple[list[StreamItem], Task]:
    """Every item of a task's log, and the finished task."""
    items: list[StreamItem] = []
    for item in client.task_logs(task_id, **options):
        if isinstance(item, Task):
            return items, item
        items.append(item)
    raise AssertionError("the log ended without a task")


def text(items: list[StreamItem], kind: str = "stdout") -> str:
    """All output of one kind."""
    return b"".join(item.data for item in items if item.kind == kind).decode()


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """Waits for a true value and returns it. An AssertionError past the deadline."""
    end = time.monotonic() + seconds
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(pause(began, 0.01))
        began = time.monotonic()
    return found


def indexed(client: BoxClient) -> int:
    """The last record that a search finds; -1 while the index is being opened."""
    try:
        return client.events.stats().indexed_seq
    except ApiError as error:
        if not error.retryable:
            raise
        return -1


def pods_of(box: ApiBox) -> httpx.Client:
    """A client of the pods of a box."""
    return httpx.Client(
        base_url=f"{box.url}/v1/pods/",
        headers={"Authorization": f"Bearer {TOKEN}"},
        trust_env=False,
    )


def ask_approval(box: ApiBox, agent: str, value: str) -> None:
    """As the gateway requests it. Raises PermissionDenied."""

    async def asked() -> None:
        client, _ = await connect(box.paths, Deadline.after(5))
        params = {
            "kind": "tool",
            "value": value,
            "parameters": {"path": "a\x1b[2J"},
            "words": "please\u202e",
        }
        try:
            await client.call(
                "approval.ask", {"agent_id": agent, "generation": 1, **params}, Deadline.after(30)
            )
        finally:
            await client.close()

    asyncio.run(asked())
