"""Programs of a sandbox as lines, and their ends as exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.commands.agents.run import (
    EXIT_AGENTBOX_FAILED,
    EXIT_SIGNAL_BASE,
    EXIT_TIMED_OUT,
    signal_number,
)

if TYPE_CHECKING:
    from agentbox.contracts.orchestrator import StreamItem
    from agentbox.contracts.sandboxes import ExecExit, ExecInfo

_EXIT_NOT_STARTED = 126


def format_program(program: ExecInfo) -> str:
    """A line."""
    end = "running" if program.exit is None else _format_exit(program.exit)
    return f"{program.n:>5}  {end:<16} {escape_invisible(' '.join(program.argv))[:80]}"


def _format_exit(end: ExecExit) -> str:
    return f"{end.reason} {'' if end.signal or end.code is None else end.code}{end.signal or ''}"


def exec_exit_code(end: ExecExit) -> int:
    """The code that `sandbox exec` returns."""
    if end.reason == "timeout":
        return EXIT_TIMED_OUT
    if end.reason == "not-started":
        return _EXIT_NOT_STARTED if end.code is None else end.code
    if end.code is not None:
        return end.code
    return (
        EXIT_AGENTBOX_FAILED if end.signal is None else EXIT_SIGNAL_BASE + signal_number(end.signal)
    )


def tells_loss(item: StreamItem) -> bool:
    """Whether output before that item is not stored any more, or could not be."""
    return json.loads(item.data).get("state") in ("truncated", "output-lost")
