"""What every part of the gateway asks about an agent. agent-host owns the answers; a lost connection to it means that
nobody holds anything."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.authorization import Authorization

Layer = Literal["proxy", "gateway", "door"]


class AccessDenied(Exception):
    """A right is not held. `rule` names what decided, for counters and people: a scope with its operation, or an address
    range. It holds no text that an agent chose."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


class Authorizer(Protocol):
    """The rights of all agents as they are now."""

    def identify(self, bearer: str) -> Authorization:
        """The agent that holds that token. Raises Refused (rule `token`) for a token that is unknown or over."""
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
        """Takes one use of the right that allows it; without `take` it only asks, for what took its use before and is under
        way. Raises Refused. Values as in `Policy.decide`."""
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
        """Returns when a person has approved that action with those parameters, for this one use; with `hold` for the next
        one. `kind`: tool, host or spawn; `words`: what the agent says of it. Raises Refused (rule `approval <kind>`): denied, too late, nobody there to ask, or asked too often."""
        ...

    def revocation(self, caller: Authorization) -> "asyncio.Future[None]":
        """Done as soon as anything of that standing is taken back or it is over: check again, or cut what is open."""
        ...

    def report_denial(
        self, caller: Authorization, layer: Layer, rule: str, detail: str = ""
    ) -> None:
        """Counts a refusal exactly, and makes an event of it within the rate that events have. `detail`: at most 200
        characters, escaped before it is shown."""
        ...
