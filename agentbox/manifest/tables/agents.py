"""[agents.<name>]: the agents that this box can start."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import ENABLED, Not, key, table
from agentbox.manifest.named_types import MoneyOrNone
from agentbox.manifest.tables.acp import AgentAcpTable
from agentbox.manifest.tables.limits import LimitsTable
from agentbox.manifest.types import (
    ApprovalAction,
    Argument,
    BoxPath,
    CommandLine,
    Glob,
    Name,
    NameOrNone,
    Variable,
)


@frozen
class ModelBudgetTable:
    """Model budget in one window."""

    max_tokens: Annotated[int, Range(1, 1000000000)] = key(
        1000000, "live", doc="Tokens in one window, both ways.", unit="tokens"
    )
    max_calls: Annotated[int, Range(1, 1000000)] = key(
        1000, "live", doc="Calls in one window.", unit="calls"
    )
    window_seconds: Annotated[int, Range(60, 2678400)] = key(
        86400, "live", doc="Length of the window."
    )
    max_concurrent: Annotated[int, Range(1, 64)] = key(
        2, "live", doc="Calls in flight.", unit="calls"
    )
    weight: Annotated[int, Range(1, 100)] = key(1, "live", doc="Share in the fair queue.")
    max_cost: MoneyOrNone = key(
        "", "live", doc='Money in one window, in the currency of [cost]; "" = no bound.'
    )


@frozen
class RestartTable:
    """What follows when it ends. More restarts than `max_restarts` in the window = failed, with an
    event.
    """

    policy: Literal["never", "on-failure", "always"] = key(
        "never", "live", doc="When it is started again."
    )
    max_restarts: Annotated[int, Range(1, 100)] = key(
        5, "live", doc="Restarts in one window.", unit="restarts", when={".policy": Not(("never",))}
    )
    window_seconds: Annotated[int, Range(10, 86400)] = key(
        300, "live", doc="Length of the window.", when={".policy": Not(("never",))}
    )
    backoff_seconds: Annotated[int, Range(1, 60)] = key(
        1,
        "live",
        doc="Wait before the first restart, doubled each time.",
        when={".policy": Not(("never",))},
    )
    backoff_max_seconds: Annotated[int, Range(1, 3600)] = key(
        60, "live", doc="Longest wait.", when={".policy": Not(("never",))}
    )


@frozen
class AgentTable:
    """One agent. Its command line is `command` and `args`: no shell, no placeholder expansion."""

    enabled: bool = key(True, "live", doc="May be started.")
    autostart: bool = key(False, "boot", doc="Started at boot.", when=ENABLED)
    max_instances: Annotated[int, Range(1, 1000)] = key(
        1, "live", doc="Alive at once.", unit="agents", when=ENABLED
    )
    command: CommandLine = key(
        (),
        "live",
        doc='Program and first arguments. With protocol = "acp" and a preset it may be absent: '
        "it is the preset's then.",
    )
    args: tuple[Argument, ...] = key((), "live", doc="Further arguments.", when=ENABLED)
    protocol: Literal["oneshot", "stdio", "acp"] = key(
        "oneshot",
        "live",
        doc="oneshot: task on stdin, answer on stdout, exit code; stdio: JSON lines; "
        "acp: Agent Client Protocol, the agent of a session, which starts it.",
        when=ENABLED,
    )
    preset: Literal["", "claude-code", "codex", "gemini-cli", "opencode"] = key(
        "",
        "live",
        doc="The agent CLI whose settings are written into its HOME before each start: model "
        'endpoint, tools of the box, no updates and telemetry; "" = none.',
        when=ENABLED,
    )
    profile: Name = key("sandboxed", "live", doc="Built-in profile or policy name.", when=ENABLED)
    provider: NameOrNone = key(
        "", "live", doc='The model endpoint put in its environment; "" = none.', when=ENABLED
    )
    env: Annotated[tuple[Variable, ...], Unique()] = key(
        (), "recreate", doc="Variables passed through.", when=ENABLED
    )
    secrets: Annotated[tuple[Variable, ...], Unique()] = key(
        (),
        "recreate",
        doc="Secrets handed over as files in its private temp directory.",
        when=ENABLED,
    )
    state: Literal["run", "shared"] = key(
        "run",
        "live",
        doc="run = memory and pods of each run are its own; shared = all runs of this "
        "agent have the same.",
        when=ENABLED,
    )
    workspace: Literal["branch", "direct"] = key(
        "branch",
        "live",
        doc="branch = a reviewed copy; direct = the directory itself.",
        when=ENABLED,
    )
    workspace_dir: BoxPath = key("/workspace", "live", doc="Working directory.", when=ENABLED)
    children: Annotated[tuple[Name, ...], Unique()] = key(
        (), "live", doc="Agents that it may spawn ($CHILDREN).", when=ENABLED
    )
    skills: Annotated[tuple[Glob, ...], Unique()] = key(
        ("*",),
        "live",
        doc="Skills that it is told of, by name or glob: an offer, not a boundary.",
        when=ENABLED,
    )
    mcp: Annotated[tuple[Name, ...], Unique()] = key(
        (), "live", doc="MCP servers that it may use ($MCP), of [mcp.servers].", when=ENABLED
    )
    approval_required: Annotated[tuple[ApprovalAction, ...], Unique()] = key(
        (), "live", doc="Actions that wait for an operator.", when=ENABLED
    )
    limits: LimitsTable = table(
        LimitsTable,
        doc="Limits of this agent. An absent key takes the value of [limits]; one that "
        "is written may be lower or higher.",
        when=ENABLED,
        inherits="limits",
    )
    llm: ModelBudgetTable = table(ModelBudgetTable, when=ENABLED)
    acp: AgentAcpTable = table(AgentAcpTable, when={**ENABLED, ".protocol": "acp"})
    restart: RestartTable = table(RestartTable, when=ENABLED)
