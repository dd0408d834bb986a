"""Rights that a test tells, decided as agent-host's are: for tests of what asks."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentbox.gateway.authorizer import Layer, Refused
from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.rights import allowing
from agentbox.policy.rights.standing import Right, Standing


def right(scope: Scope, operation: str, *patterns: str, **changes: Any) -> Right:
    """An allowing one; `changes` are fields of Right."""
    base = Right(
        grant_id=f"{scope}-{patterns[0]}", scope=scope, mode="allow", operations=(operation,), patterns=patterns
    )
    return replace(base, **changes)


class ToldAuthority:
    """An Authority of agents that a test adds, gives rights to, and ends. `refusals` are (agent, layer, rule)."""

    def __init__(self) -> None:
        self.refusals: list[tuple[str, Layer, str]] = []
        self.asked: list[tuple[str, str, str, dict[str, Any]]] = []
        self.approves = False
        self._lives: dict[str, Standing] = {}
        self._cuts: dict[str, asyncio.Future[None]] = {}

    def add(self, agent_id: str, token: str, rights: Sequence[Right] = (), **changes: Any) -> Standing:
        """Its bearer token is `token`; a `name` is one of [agents], and its state has its own id."""
        made = Standing(**{
            "agent_id": agent_id, "generation": 1, "name": agent_id, "profile": "standard", "rights": tuple(rights),
            "token_sha256": hashlib.sha256(token.encode()).hexdigest(), "state": agent_id, "agent": changes.get("name", ""),
            "session_id": agent_id, "trace_id": "a" * 32,
            **changes,
        })  # fmt: skip
        return self.put(made)

    def put(self, standing: Standing) -> Standing:
        """In place of what that agent had; whoever waits for a change is told."""
        self._lives[standing.agent_id] = standing
        self._cut(standing.agent_id)
        return standing

    def give(self, agent_id: str, rights: Sequence[Right]) -> None:
        """These instead, from now on."""
        self.put(replace(self._lives[agent_id], rights=tuple(rights)))

    def end(self, agent_id: str) -> None:
        """It is over."""
        del self._lives[agent_id]
        self._cut(agent_id)

    def identify(self, bearer: str) -> Standing:
        """Raises Refused."""
        digest = hashlib.sha256(bearer.encode()).hexdigest()
        for standing in self._lives.values():
            if standing.token_sha256 == digest:
                return standing
        raise Refused("token", "the token is unknown, or its agent has ended")

    async def check(
        self,
        who: Standing,
        scope: Scope,
        operation: str,
        value: str,
        *,
        method: str = "",
        path: str = "",
        take: bool = True,
    ) -> None:
        """Raises Refused."""
        now = self._lives.get(who.agent_id)
        if now is None or not allowing(now.rights, scope, operation, value, method=method, path=path):
            raise Refused(f"{scope} {operation}", f"no right of the agent allows {scope} {operation} here")

    async def approve(
        self,
        who: Standing,
        kind: str,
        value: str,
        parameters: Mapping[str, Any],
        words: str = "",
        *,
        hold: bool = False,
    ) -> None:
        """Nobody is there to ask, unless `approves` says so. Raises Refused."""
        self.asked.append((who.agent_id, kind, value, dict(parameters)))
        if not self.approves:
            raise Refused(f"approval {kind}", "it waits for an approval, and none was given")

    def revoked(self, who: Standing) -> "asyncio.Future[None]":
        """Done at the next `give` or `end`."""
        future = self._cuts.setdefault(who.agent_id, asyncio.get_running_loop().create_future())
        if who.agent_id not in self._lives and not future.done():
            future.set_result(None)
        return future

    def denied(self, who: Standing, layer: Layer, rule: str, detail: str = "") -> None:
        """Kept in `refusals`."""
        self.refusals.append((who.agent_id, layer, rule))

    def _cut(self, agent_id: str) -> None:
        if (future := self._cuts.pop(agent_id, None)) is not None and not future.done():
            future.set_result(None)
