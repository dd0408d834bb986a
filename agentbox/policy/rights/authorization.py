"""What a program that checks rights knows of one agent: who it is, what it may ask for, and what it may use up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agentbox.policy.patterns.scopes import Scope

PRINCIPAL: Final = "urn:agentbox:agent:"
"""Before the id of an agent: the name under which it calls the API."""


@dataclass(frozen=True, kw_only=True)
class Right:
    """One rule of a scope that a program of ours checks (net, tool, llm, agent), in the order of the policy: the last that
    matches decides. Variables are replaced. `expires_at` in Unix seconds; `uses` in all; `rate` in uses a minute."""

    grant_id: str
    scope: Scope
    mode: Literal["allow", "deny"]
    operations: tuple[str, ...]
    patterns: tuple[str, ...]
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    expires_at: float | None = None
    uses: int | None = None
    rate: int | None = None


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What of a model an agent may use in a window (`agents.<name>.llm`); carved out of its parent's."""

    max_tokens: int
    max_calls: int
    window_seconds: int
    max_concurrent: int
    weight: int


@dataclass(frozen=True, kw_only=True)
class Ancestor:
    """Who started an agent, or started that one, as it was then: it may be over. What an agent uses of a model or moves through
    the proxy is used of every ancestor's budget too, and in the fair queue it has its outermost ancestor's place."""

    agent_id: str
    name: str
    budget: Budget | None
    agent: str = ""  # name in [agents]; "" = a program given ad hoc
    rights: tuple[
        Right, ...
    ] = ()  # as they are now: what its descendants ask for, each of these lists must allow as well
    egress: int | None = None  # its `limits.egress`, in bytes; None = the box's


@dataclass(frozen=True, kw_only=True)
class Authorization:
    """One generation of one agent. `name` is for people. `token_sha256`: hex digest of its bearer token, which nobody keeps."""

    agent_id: str
    generation: int
    name: str
    token_sha256: str
    profile: str
    agent: str = ""  # name in [agents], whose budget it uses; "" = a program given ad hoc
    state: str = ""  # id of the state whose memory and pods it uses
    session_id: str = ""  # the task, else the head of the family
    trace_id: str = ""
    parent_id: str | None = None
    ancestors: tuple[Ancestor, ...] = ()  # the parent first; empty for one that an operator started
    rights: tuple[Right, ...] = ()
    provider: str = ""  # name in [providers]; "" = none
    budget: Budget | None = None  # None = no model
    approval_required: tuple[str, ...] = ()  # `tool:<p>`, `host:<p>`, `spawn:<p>`
    children: tuple[str, ...] = ()  # names of [agents] that it may start
    secrets: tuple[str, ...] = ()  # names that it was given as files
    limits: Mapping[str, Any] = field(
        default_factory=dict
    )  # effective, as in [limits]; sizes in bytes

    @property
    def principal(self) -> str:
        """The name under which it calls the API."""
        return f"{PRINCIPAL}{self.agent_id}"
