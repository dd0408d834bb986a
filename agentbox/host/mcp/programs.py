"""Tools that run programs: at once, or as a task."""

from contextlib import suppress
from typing import Annotated, Final

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from agentbox.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.contracts.orchestrator import StreamItem
from agentbox.contracts.task_records import Task
from agentbox.host.mcp.results import document, program_output
from agentbox.host.mcp.toolset import Toolset

_CANCEL_SECONDS: Final = 10.0
MAX_OUTPUT: Final = 1 << 20  # bytes kept of stdout, and of stderr

Command = Annotated[
    list[str],
    Field(description="Program and arguments; no shell. Empty if `agent` is given."),
]
AgentName = Annotated[
    str, Field(description="An agent of the manifest instead of a command; it reads `input`.")
]
Input = Annotated[str, Field(description="Text for standard input.")]
Timeout = Annotated[float, Field(description="Seconds.", gt=0, le=86400)]
TaskId = Annotated[str, Field(description="The id that task_submit returned.")]


def add_program_tools(tools: Toolset, box: AsyncBoxClient) -> None:
    """run, task_submit, task_show, task_logs, task_cancel."""

    async def run(
        command: Command | None = None,
        agent: AgentName = "",
        input: Input = "",
        timeout_s: Timeout = 600,
    ) -> CallToolResult:
        """Run a program in the box and return its output. It works on a copy of the project; what
        it changed waits for a review (review_show) and is not in the project until a person commits
        it. Cancelling the call ends the program."""
        spec = _spec(command, agent)
        with anyio.CancelScope(shield=True):  # else it would run without a task to cancel
            submitted = await box.submit_task(
                spec, input=input.encode() or None, timeout_s=timeout_s
            )
        try:
            return await _output(box, submitted.task_id, follow=True)
        except anyio.get_cancelled_exc_class():
            await _cancel(box, submitted.task_id)
            raise

    async def task_submit(
        command: Command | None = None,
        agent: AgentName = "",
        input: Input = "",
        timeout_s: Timeout = 600,
    ) -> CallToolResult:
        """Start a program in the box as `run` does, and return the id of the task at once."""
        submitted = await box.submit_task(
            _spec(command, agent), input=input.encode() or None, timeout_s=timeout_s
        )
        return document(submitted.to_wire())

    async def task_show(task_id: TaskId) -> CallToolResult:
        """The state of a task."""
        return document((await box.get_task(task_id)).to_wire())

    async def task_logs(task_id: TaskId) -> CallToolResult:
        """What a task has written so far, without waiting."""
        return await _output(box, task_id, follow=False)

    async def task_cancel(task_id: TaskId) -> CallToolResult:
        """Cancel a task that waits, or end one that runs."""
        return document((await box.cancel_task(task_id)).to_wire())

    tools.writing(run)
    tools.writing(task_submit)
    tools.reading(task_show)
    tools.reading(task_logs)
    tools.writing(task_cancel)


def _spec(command: list[str] | None, agent: str) -> dict[str, object]:
    """The agent to start; the box checks it. Raises ToolError for neither or both."""
    if bool(command) == bool(agent):
        raise ToolError("give `command`, the program and its arguments, or `agent`, not both")
    if command:
        return {"name": command[0].rpartition("/")[2] or command[0], "argv": command}
    return {"name": agent, "agent": agent}


async def _cancel(box: AsyncBoxClient, task_id: str) -> None:
    """The client cancelled the call, or has gone: nobody waits for the task."""
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CANCEL_SECONDS):
        with suppress(ApiError, BoxUnreachable):  # it may have ended meanwhile
            await box.cancel_task(task_id)


async def _output(box: AsyncBoxClient, task_id: str, *, follow: bool) -> CallToolResult:
    output: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    left_out = 0
    task: Task | None = None
    async for item in box.task_logs(task_id, follow=follow):
        if not isinstance(item, StreamItem):
            task = item
        elif (kept := output.get(item.kind)) is not None:
            taken = item.data[: MAX_OUTPUT - len(kept)]
            kept += taken
            left_out += len(item.data) - len(taken)
    task = task or await box.get_task(task_id)
    stdout, stderr = (part.decode("utf-8", "replace") for part in output.values())
    summary = _summary(task)
    if left_out:
        summary += f" {left_out} bytes of its output are left out."
    return program_output(summary, stdout, stderr)


def _summary(task: Task) -> str:
    """One line on how it went, in our words."""
    line = f"Task {task.task_id} has {task.state}" if task.final else f"Task {task.task_id} runs"
    if task.exit is not None:
        line += f", exit code {task.exit.get('code')}, signal {task.exit.get('signal')}"
    if task.agent_id is not None:
        line += f". Agent {task.agent_id}: review_show tells what it changed"
    return f"{line}."
