"""The process of `agentbox mcp`: what its memory holds, and what ends with a call or a client."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import until
from mcp import Client, StdioServerParameters
from support.api_box import TOKEN

from agentbox.client import BoxClient


def server_processes() -> list[int]:
    """Of this process: children that run `agentbox mcp`."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [n for n in map(int, children) if b"mcp" in Path(f"/proc/{n}/cmdline").read_bytes()]


def is_in_memory(pid: int, words: bytes) -> bool:
    """Whether a readable and writable page of the process has these bytes."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            bounds, rights, *_ = line.split()
            start, end = (int(bound, 16) for bound in bounds.split("-"))
            if rights.startswith("rw") and words in os.pread(memory.fileno(), end - start, start):
                return True
    return False


async def test_it_never_has_the_admin_token(mcp_command: Callable[..., list[str]]) -> None:
    """Its memory holds its own token, and not that of the operator."""
    words = mcp_command()
    async with Client(
        StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    ) as mcp:
        await mcp.call_tool("agent_list", {})
        (pid,) = server_processes()
        assert is_in_memory(pid, b"Bearer abx_")
        assert not is_in_memory(pid, TOKEN.encode())


@pytest.mark.parametrize("end", ["cancel", "leave"])
def test_a_run_that_nobody_waits_for_ends(
    mcp_command: Callable[..., list[str]], client: BoxClient, end: str
) -> None:
    """The client cancelled the call, or went away: the task is cancelled in the box."""
    hello = {"name": "test", "version": "1"}
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": hello}
    sleep = {"name": "run", "arguments": {"command": ["sleep", "600"]}}

    def running() -> list[str]:
        tasks = client.list_tasks(limit=100).items
        return [task.task_id for task in tasks if task.state == "running"]

    with subprocess.Popen(
        mcp_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        for message in (
            {"id": 1, "method": "initialize", "params": start},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": sleep},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        until(lambda: len(running()) == 1)
        (task_id,) = running()
        if end == "cancel":
            cancel = {"method": "notifications/cancelled", "params": {"requestId": 2}}
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **cancel}) + "\n")
            process.stdin.flush()
        else:
            process.stdin.close()
        until(lambda: client.get_task(task_id).state == "cancelled")
        process.stdin.close()
        assert process.wait(20) == 0
