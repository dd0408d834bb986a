"""Sessions and work items by `agentbox mcp`, used by the official client of the protocol in both of its eras."""

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent
from support.acp_agent import SCRIPT
from support.session_box import SessionBox

MANIFEST = f"""
[agents.scripted]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
protocol = "acp"
max_instances = 4
acp.permissions = "allow"
"""
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture(scope="module")
def box() -> Iterator[SessionBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with SessionBox(folder, "", MANIFEST, {}) as running:
        yield running
    shutil.rmtree(folder)


def desktop(box: SessionBox, mode: Any) -> Client:
    """A client that starts the command."""
    words = box.words("mcp")
    server = StdioServerParameters(command=words[0], args=words[1:], env=box.environment())
    return Client(server, mode=mode)


def text(result: CallToolResult) -> str:
    """All text of a result that is no error."""
    said = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
    assert not result.is_error, said
    return said


def data(result: CallToolResult) -> Any:
    """The JSON between the marks."""
    found = re.search(r"until ([0-9a-f]{16})\]\n(.*)\n\[\1\]", text(result), re.DOTALL)
    assert found is not None, text(result)
    return json.loads(found[2])


@ERAS
async def test_a_session_is_asked_and_reviewed(box: SessionBox, mode: str) -> None:
    """Two turns of one agent, its transcript, and its changes for a review; its words are data."""
    async with desktop(box, mode) as client:
        opened = data(await client.call_tool("session_new", {"name": f"of {mode}"}))
        here = {"session_id": opened["session_id"]}
        said = text(await client.call_tool("session_prompt", {**here, "text": "hello there"}))
        assert re.search(r"^Turn 1 has ended: end_turn\.\n\[data from the box", said)
        assert "you said: hello there" in said
        said = text(await client.call_tool("session_prompt", {**here, "text": "edit hi"}))
        assert "Turn 2 has ended: end_turn." in said
        page = data(await client.call_tool("session_transcript", {**here, "limit": 500}))
        kinds = [item["kind"] for item in page["items"]]
        assert (kinds.count("prompt"), kinds.count("stop")) == (2, 2)
        closed = data(await client.call_tool("session_close", here))
        assert closed["state"] == "closed"
        review = text(await client.call_tool("review_show", {"agent_id": closed["sandbox_id"]}))
        assert "made.txt" in review


@ERAS
async def test_a_turn_goes_on_and_is_cancelled(box: SessionBox, mode: str) -> None:
    """By its tool, and by a client that cancels its call. A second prompt meanwhile is refused."""
    async with desktop(box, mode) as client:
        here = {"session_id": data(await client.call_tool("session_new", {}))["session_id"]}
        waiting = {**here, "text": "wait"}
        said = text(await client.call_tool("session_prompt", {**waiting, "wait_s": 0}))
        assert "Turn 1 goes on" in said
        busy = await client.call_tool("session_prompt", waiting)
        assert busy.is_error
        await client.call_tool("session_cancel", here)
        await state(box, here["session_id"], "idle")
        asking = asyncio.create_task(client.call_tool("session_prompt", waiting))
        await state(box, here["session_id"], "busy")
        asking.cancel()
        await asyncio.wait({asking})
        await state(box, here["session_id"], "idle")
        stops = [
            item["data"]["stop_reason"]
            for item in data(await client.call_tool("session_transcript", here))["items"]
            if item["kind"] == "stop"
        ]
        assert stops == ["cancelled", "cancelled"]
        await client.call_tool("session_close", here)


async def state(box: SessionBox, session_id: str, wanted: str) -> None:
    """Waits until the session has that state."""
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(box.client.sessions.show, session_id)).state != wanted:
            await asyncio.sleep(0.02)


@ERAS
async def test_a_bead_is_claimed_released_and_closed(box: SessionBox, mode: str) -> None:
    """A second claim is refused while the lease is held, and a close without it; errors are the box's own words."""
    async with desktop(box, mode) as client:
        epic = data(await client.call_tool("bead_create", {"title": "all work"}))
        part = {"title": "work", "parent_id": epic["id"]}
        bead = data(await client.call_tool("bead_create", part))
        here = {"bead_id": bead["id"]}
        lease = data(await client.call_tool("bead_claim", here))["lease_id"]
        assert (await client.call_tool("bead_claim", here)).is_error
        assert (await client.call_tool("bead_close", here)).is_error
        ready = data(await client.call_tool("bead_ready", {}))["items"]
        assert bead["id"] not in [row["id"] for row in ready]
        freed = data(await client.call_tool("bead_release", {**here, "lease_id": lease}))
        assert freed["status"] == "open"
        lease = data(await client.call_tool("bead_claim", here))["lease_id"]
        ended = {**here, "lease_id": lease, "result": {"n": 1}, "note": "all of it"}
        closed = data(await client.call_tool("bead_close", ended))
        assert (closed["status"], closed["outcome"]) == ("closed", "done")
        assert data(await client.call_tool("bead_show", here))["result"] == {"n": 1}
