"""What tests do with sandboxes of a real agent-host: create one, run programs in it, use its files."""

import asyncio
from collections.abc import Callable
from typing import Any

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.sandboxes import ExecResult, NewSandbox, Sandbox
from agentbox.core.ids import uuid7


async def create(host: AgentHost, **fields: Any) -> str:
    """Its id."""
    sandbox = NewSandbox(**{"name": "lab", **fields})
    return (await host.create_sandbox(sandbox, request_id=uuid7())).sandbox_id


async def run(host: AgentHost, sandbox_id: str, *argv: str, **options: Any) -> ExecResult:
    defaults: dict[str, Any] = {
        "cwd": "",
        "env": None,
        "stdin": None,
        "interactive": False,
        "timeout_s": 30.0,
        "max_output": 1 << 20,
        "detach": False,
        "request_id": uuid7(),
    }
    return await host.exec_sandbox(sandbox_id, argv, **{**defaults, **options})


async def sh(host: AgentHost, sandbox_id: str, script: str, **options: Any) -> ExecResult:
    return await run(host, sandbox_id, "sh", "-c", script, **options)


async def shown_when(
    host: AgentHost, sandbox_id: str, condition: Callable[[Sandbox], bool]
) -> Sandbox:
    """The sandbox once that is true of it."""
    async with asyncio.timeout(10):
        while not condition(sandbox := await host.get_sandbox(sandbox_id)):
            await asyncio.sleep(0.01)
    return sandbox


async def put(host: AgentHost, sandbox_id: str, path: str, *parts: bytes) -> None:
    """A file, in parts."""
    upload = uuid7()
    for number, part in enumerate(parts, start=1):
        await host.write_sandbox_file(
            sandbox_id, path, upload=upload, data=part, last=number == len(parts)
        )


async def get(host: AgentHost, sandbox_id: str, path: str) -> bytes:
    """The first MiB of a file."""
    return (await host.read_sandbox_file(sandbox_id, path, offset=0, size=1 << 20)).data
