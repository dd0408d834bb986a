"""[acp] and [agents.<name>.acp]: sessions of agents that speak the Agent Client Protocol."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Pattern, Range
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import Size


@frozen
class AcpTable:
    """Bounds of sessions. Each running one is a sandbox, and counts as such."""

    max_sessions: Annotated[int, Range(0, 1_000)] = key(
        32, "live", doc="Sessions that run at the same time.", unit="sessions"
    )
    max_suspended: Annotated[int, Range(0, 10_000)] = key(
        64,
        "live",
        doc="Suspended sessions; with one more the oldest is closed, and its branch sealed.",
        unit="sessions",
    )
    max_message: Size = key(Size("16MiB"), "live", doc="One message of an agent or an editor.")
    initialize_seconds: Annotated[int, Range(1, 600)] = key(
        30, "live", doc="For the agent to answer `initialize`."
    )
    new_seconds: Annotated[int, Range(1, 600)] = key(
        60, "live", doc="For the agent to open, load or resume a session."
    )
    cancel_seconds: Annotated[int, Range(1, 600)] = key(
        10, "live", doc="For the agent to stop a cancelled turn; then it is interrupted."
    )
    v2: bool = key(
        False,
        "boot",
        doc="Version 2 of the protocol, a draft; refused until a release has it (E606).",
    )


@frozen
class AgentAcpTable:
    """Sessions of this agent."""

    permissions: Literal["ask", "allow", "deny"] = key(
        "ask",
        "live",
        doc="Answer to the agent's own requests for permission. ask = that of the client, without "
        "one a denial. They are no boundary: the kernel confines the agent.",
    )
    auth: Annotated[str, Pattern("^[A-Za-z0-9._:-]{0,128}$")] = key(
        "", "live", doc='Authentication method of the agent; "" = that of its preset, or none.'
    )
    turn_seconds: Annotated[int, Range(1, 86_400)] = key(
        3600, "live", doc="Length of one turn; then it is cancelled."
    )
    idle_suspend_seconds: Annotated[int, Range(0, 86_400)] = key(
        900, "live", doc="Without a turn and without a client; then it is suspended. 0 = never."
    )
    resume: Literal["auto", "native", "transcript", "never"] = key(
        "auto",
        "live",
        doc="native = the agent loads its own session; transcript = a new one is given the end of "
        "the transcript; auto = native if the agent can; never = a suspended session stays so.",
    )
    transcript: Literal["full", "digest", "off"] = key(
        "full",
        "live",
        doc="What events keep of a session. digest = kinds, ids, sizes and hashes.",
    )
    max_transcript: Size = key(
        Size("64MiB"), "live", doc="Stored text of one session; over it, the oldest goes."
    )
    keep_days: Annotated[int, Range(0, 3650)] = key(
        30,
        "live",
        doc="A suspended session is closed after that, and a closed one is forgotten.",
        unit="days",
    )
