"""Tools for sandboxes: several programs, one after another, on one copy of the project."""

from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from agentbox.client import AsyncBoxClient
from agentbox.contracts.sandboxes import ExecResult
from agentbox.host.mcp.results import document, program_output
from agentbox.host.mcp.toolset import Toolset

SandboxId = Annotated[str, Field(description="The id that sandbox_create returned.")]
FilePath = Annotated[
    str, Field(description="`workspace/...`, the copy of the project, or `tmp/...`, its TMPDIR.")
]


def add_sandbox_tools(tools: Toolset, box: AsyncBoxClient) -> None:
    """sandbox_create, sandbox_exec, sandbox_read, sandbox_write, sandbox_end."""

    async def sandbox_create(
        name: Annotated[str, Field(description="For people.")] = "mcp",
        profile: Annotated[str, Field(description='A profile or policy; "" is the default.')] = "",
    ) -> CallToolResult:
        """Create a sandbox with a copy of the project. It ends by itself after an hour; what was
        changed in it then waits for a review."""
        return document((await box.sandboxes.create(name, profile=profile)).to_wire())

    async def sandbox_exec(
        sandbox_id: SandboxId,
        command: Annotated[list[str], Field(min_length=1, description="No shell.")],
        cwd: str = "",
        input: Annotated[str, Field(description="Text for standard input.")] = "",
        timeout_s: Annotated[float, Field(description="Seconds.", gt=0, le=86400)] = 600,
    ) -> CallToolResult:
        """Run a program in a sandbox and return its output. Files, and what it leaves running, are
        there for the next one."""
        result = await box.sandboxes.exec(
            sandbox_id, command, cwd=cwd, stdin=input.encode() or None, timeout_s=timeout_s
        )
        stdout, stderr = (
            part.decode("utf-8", "replace") for part in (result.stdout, result.stderr)
        )
        return program_output(_summary(result), stdout, stderr)

    async def sandbox_read(sandbox_id: SandboxId, path: FilePath) -> CallToolResult:
        """The text of a file in a sandbox."""
        return document((await box.sandbox_files.read(sandbox_id, path)).decode("utf-8", "replace"))

    async def sandbox_write(sandbox_id: SandboxId, path: FilePath, content: str) -> CallToolResult:
        """Write a text file in a sandbox."""
        await box.sandbox_files.write(sandbox_id, path, content.encode())
        return document({"path": path, "bytes": len(content.encode())})

    async def sandbox_end(sandbox_id: SandboxId) -> CallToolResult:
        """End all programs of a sandbox. review_show then tells what was changed."""
        return document((await box.sandboxes.end(sandbox_id)).to_wire())

    for writing in (sandbox_create, sandbox_exec, sandbox_write, sandbox_end):
        tools.writing(writing)
    tools.reading(sandbox_read)


def _summary(result: ExecResult) -> str:
    """One line on how it went, in our words. Raises ToolError if nothing was run."""
    if result.exit is None:
        return f"Program {result.n} runs."
    if result.exit.reason == "not-started":
        raise ToolError(f"the program was not started: {result.exit.detail}")
    line = f"Program {result.n} has ended ({result.exit.reason}), exit code {result.exit.code}"
    line += f", signal {result.exit.signal}."
    return f"{line} Output beyond 1 MiB is left out." if result.truncated else line
