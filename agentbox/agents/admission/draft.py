"""What admission decides on, and what it has decided so far. All of it is frozen."""

from collections.abc import Callable, Mapping
from dataclasses import field

from agentbox.agents.config import HostConfig
from agentbox.contracts.orchestrator import DEFAULT, AgentKind, AgentSpec, AgentState, Limits
from agentbox.core.frozen import frozen
from agentbox.plan.tables import AgentPlan, LimitsPlan
from agentbox.policy.rights.authorization import PRINCIPAL
from agentbox.policy.rights.grant_set import GrantSet

TASK_PREFIX = (
    "task:"  # prefix of the request ids of tasks, whose runs are single whatever the manifest says
)


def request_owner(program: str, principal: str) -> str:
    """The principal; for a program both, and no principal contains a space."""
    return f"urn:agentbox:program:{program} {principal}" if program else principal


@frozen
class Requester:
    """Who requests an agent, under which id, and whether the limits of the manifest apply. For a
    task, `submitter` is who submitted it and `state_id` the state that all of its attempts use.
    `session_id` and `trace_id` belong to the call; "" means none yet. `program` is the one of this
    box that owns the agent, "" for none."""

    principal: str
    request_id: str
    admin: bool = False
    submitter: str = ""
    submitter_admin: bool = False
    state_id: str = ""
    session_id: str = ""
    trace_id: str = ""
    program: str = ""

    @property
    def request_owner(self) -> str:
        """Whose request ids these are: programs have their own for each principal."""
        return request_owner(self.program, self.principal)

    @property
    def is_agent(self) -> bool:
        return self.principal.startswith(PRINCIPAL)


@frozen
class Parent:
    """The parent of a new agent, as of the request. `over`: no generation will follow."""

    agent_id: str
    name: str
    state: AgentState
    over: bool
    depth: int
    limits: Limits
    grant_set: GrantSet
    session_id: str
    trace_id: str


@frozen
class HostUsage:
    """What the host has, and what its agents use of it. The default admits nobody."""

    running: Mapping[str, int] = field(
        default_factory=dict
    )  # agents that are not over, by name in [agents]; "" for ad hoc programs
    sandboxes: int = 0  # of those, the ones without a program of their own
    open_files: int = 0  # that agent-host may have
    disk_free: int = 0  # bytes of the file system of the state
    disk_size: int = 0


@frozen
class AdmissionInputs:
    """Everything that decides beside spec and requester. `now` in Unix seconds; `once`: the agent
    is a one-shot run; `kind`: only an agent has a program; `parent` is None if the spec names none,
    or one that does not exist."""

    config: HostConfig
    now: float
    once: bool = False
    kind: AgentKind = "agent"
    parent: Parent | None = None
    usage: HostUsage = HostUsage()


@frozen
class Draft:
    """An agent in the making. Each step returns a copy with more fields decided; the last one is
    the agent to start."""

    spec: AgentSpec
    requester: Requester
    ceiling: LimitsPlan  # default and maximum of each limit
    table: AgentPlan | None = None  # None for an ad hoc program
    parent: Parent | None = None
    limits: Limits = DEFAULT
    grant_set: GrantSet = field(default_factory=GrantSet)


Step = Callable[[Draft, AdmissionInputs], Draft]
