"""The authorization interface of the gateway. agent-host decides; without a connection to it, every
agent is denied."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.authorization import Authorization

Layer = Literal["proxy", "gateway", "agent-api"]


class AccessDenied(Exception):
    """A right is missing. `rule` names the deciding rule for counters and messages: a scope with
    its operation, or an address range. It never contains text chosen by an agent."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


class Authorizer(Protocol):
    """The current rights of all agents."""

    def identify(self, bearer: str) -> Authorization:
        """The agent with this token. Raises AccessDenied (rule `token`) if it is unknown or has
        expired."""
        ...

    async def check(
        self,
        caller: Authorization,
        scope: Scope,
        operation: str,
        value: str,
        *,
        method: str = "",
        path: str = "",
        consume: bool = True,
    ) -> None:
        """Consumes one use of the right that allows the operation. With `consume=False` only
        checks, for operations already counted. Raises AccessDenied. Values as in `Policy.decide`.
        """
        ...

    async def approve(
        self,
        caller: Authorization,
        kind: str,
        value: str,
        parameters: Mapping[str, Any],
        reason: str = "",
        *,
        for_next_use: bool = False,
    ) -> None:
        """Returns once a person has approved the action with these parameters for one use; with
        `for_next_use`, for the next one. `kind`: tool, host or spawn; `reason`: the agent's own
        explanation. Raises AccessDenied (rule `approval <kind>`) if denied, timed out, without an
        approver, or requested too often."""
        ...

    def revocation(self, caller: Authorization) -> "asyncio.Future[None]":
        """A future that is done once any right of the agent is revoked or the agent ends: check
        again, or close what is open."""
        ...

    def report_denial(
        self, caller: Authorization, layer: Layer, rule: str, detail: str = ""
    ) -> None:
        """Counts a denial exactly, and emits an event within the event rate limit. `detail`: at
        most 200 characters, escaped before display."""
        ...
