"""[agents.<name>]: the agents that this box can start."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from agentbox.manifest.tables.limits import LimitsTable
from agentbox.manifest.types import (
    INHERITS,
    Argument,
    BoxPath,
    CommandLine,
    Name,
    NameOrNone,
    Range,
    TypeName,
    Unique,
    Variable,
    key,
)


@dataclass(frozen=True, kw_only=True)
class LlmTable:
    """[agents.<name>.llm]: the model budget per window."""

    max_tokens: Annotated[int, Range(1, 1000000000)] = key(1000000, "live")
    max_calls: Annotated[int, Range(1, 1000000)] = key(1000, "live")
    window_seconds: Annotated[int, Range(60, 2678400)] = key(86400, "live")
    max_concurrent: Annotated[int, Range(1, 64)] = key(2, "live")
    weight: Annotated[int, Range(1, 100)] = key(1, "live")


@dataclass(frozen=True, kw_only=True)
class RestartTable:
    """[agents.<name>.restart]: after more than `max_restarts` in the window the agent has failed,
    with an event.
    """

    policy: Literal["never", "on-failure", "always"] = key("never", "live")
    max_restarts: Annotated[int, Range(1, 100)] = key(5, "live")
    window_seconds: Annotated[int, Range(10, 86400)] = key(300, "live")
    backoff_seconds: Annotated[int, Range(1, 60)] = key(1, "live")
    backoff_max_seconds: Annotated[int, Range(1, 3600)] = key(60, "live")


@dataclass(frozen=True, kw_only=True)
class AgentTable:
    """One agent. argv = `command` + `args`, without shell or placeholders. `limits` default to
    those of [limits]. `state`: each run has its own memory and pods, or all runs of this agent
    share them.
    """

    enabled: bool = key(True, "live")
    autostart: bool = key(False, "boot")
    max_instances: Annotated[int, Range(1, 1000)] = key(1, "live")
    command: CommandLine = key((), "live", required=True)
    args: tuple[Argument, ...] = key((), "live")
    protocol: Literal["oneshot", "stdio", "acp"] = key("oneshot", "live")
    profile: Name = key("sandboxed", "live")
    provider: NameOrNone = key("", "live")
    env: Annotated[tuple[Variable, ...], Unique()] = key((), "recreate")
    secrets: Annotated[tuple[Variable, ...], Unique()] = key((), "recreate")
    state: Literal["run", "shared"] = key("run", "live")
    workspace: Literal["branch", "direct"] = key("branch", "live")
    workspace_dir: BoxPath = key("/workspace", "live")
    children: Annotated[tuple[Name, ...], Unique()] = key((), "live")
    approval_required: Annotated[tuple[Annotated[str, TypeName("action")], ...], Unique()] = key(
        (), "live"
    )
    limits: LimitsTable = field(default_factory=LimitsTable, metadata={INHERITS: "limits"})
    llm: LlmTable = field(default_factory=LlmTable)
    restart: RestartTable = field(default_factory=RestartTable)
