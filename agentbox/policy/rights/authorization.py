"""What programs that check rights know of an agent: its identity, its rights, and its budgets."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal

from agentbox.core.frozen import frozen
from agentbox.policy.patterns.scopes import Scope

PRINCIPAL: Final = "urn:agentbox:agent:"
"""Prefix of the principal under which an agent calls the API."""


@frozen
class Right:
    """One rule of a scope that is checked by our programs (net, tool, llm, agent), in the order of
    the policy: the last match decides. Variables are replaced. `expires_at` in Unix seconds; `uses`
    in total; `rate` in uses a minute.
    """

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


@frozen
class Budget:
    """Model budget of an agent per window (`agents.<name>.llm`); part of its parent's. `max_cost`
    in micro-units of the currency, None = no bound.
    """

    max_tokens: int
    max_calls: int
    window_seconds: int
    max_concurrent: int
    weight: int
    max_cost: int | None = None


@frozen
class Ancestor:
    """The parent of an agent, or of another ancestor, as of the start: it may have ended. Model use
    and proxy traffic of an agent also count against the budgets of all ancestors, and the fair
    queue uses the outermost one.
    """

    agent_id: str
    name: str
    budget: Budget | None
    agent: str = ""  # name in [agents]; "" = ad hoc program
    rights: tuple[
        Right, ...
    ] = ()  # current rights: each ancestor must allow what its descendants request
    egress: int | None = None  # its `limits.egress`, in bytes; None = the box's


@frozen
class Authorization:
    """One generation of one agent. `name` is for people. `token_sha256`: hex digest of its bearer
    token, which is not stored.
    """

    agent_id: str
    generation: int
    name: str
    token_sha256: str
    profile: str
    agent: str = ""  # name in [agents], whose budget it uses; "" = ad hoc program
    state: str = ""  # id of the state whose memory and pods it uses
    session_id: str = ""  # the task, else the root of the process family
    trace_id: str = ""
    parent_id: str | None = None
    ancestors: tuple[Ancestor, ...] = ()  # the parent first; empty if started by an operator
    rights: tuple[Right, ...] = ()
    provider: str = ""  # name in [providers]; "" = none
    budget: Budget | None = None  # None = no model
    approval_required: tuple[str, ...] = ()  # `tool:<p>`, `host:<p>`, `spawn:<p>`
    children: tuple[str, ...] = ()  # names of [agents] that it may start
    secrets: tuple[str, ...] = ()  # names of secrets provided as files
    skills: tuple[str, ...] = ()  # globs of the skills that it is told of; no right
    mcp: tuple[str, ...] = ()  # MCP servers that it is offered; each call needs a right too
    limits: Mapping[str, Any] = field(
        default_factory=dict
    )  # effective, as in [limits]; sizes in bytes

    @property
    def principal(self) -> str:
        """The principal under which it calls the API."""
        return f"{PRINCIPAL}{self.agent_id}"
