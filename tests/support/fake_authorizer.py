"""Rights defined by a test and decided like agent-host's, for tests of callers."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentbox.core.records.plain import to_plain
from agentbox.gateway.authorizer import AccessDenied, Layer
from agentbox.plan.tables import LimitsPlan
from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.authorization import Authorization, Right
from agentbox.policy.rights.rights import find_allowing_right
from support import tables


def right(scope: Scope, operation: str, *patterns: str, **changes: Any) -> Right:
    """Return an allow rule; `changes` are fields of Right."""
    base = Right(
        grant_id=f"{scope}-{patterns[0]}",
        scope=scope,
        mode="allow",
        operations=(operation,),
        patterns=patterns,
    )
    return replace(base, **changes)


class FakeAuthorizer:
    """An Authorizer with agents that a test adds, changes and removes. `refusals` are (agent,
    layer, rule). `limits` are those of the box.
    """

    def __init__(self, limits: LimitsPlan | None = None) -> None:
        self._limits = to_plain(limits or tables.limits())
        self.refusals: list[tuple[str, Layer, str]] = []
        self.approval_requests: list[tuple[str, str, str, dict[str, Any]]] = []
        self.approves = False
        self.decided: asyncio.Event | None = None  # approvals wait for it
        self._agents: dict[str, Authorization] = {}
        self._waiters: dict[str, asyncio.Future[None]] = {}

    def add(
        self, agent_id: str, token: str, rights: Sequence[Right] = (), **changes: Any
    ) -> Authorization:
        """The bearer token is `token`; a `name` is one of [agents], and the state has its own
        id. `limits` are changes of those of the box.
        """
        authorization = Authorization(
            **{
                "agent_id": agent_id,
                "generation": 1,
                "name": agent_id,
                "profile": "standard",
                "rights": tuple(rights),
                "token_sha256": hashlib.sha256(token.encode()).hexdigest(),
                "state": agent_id,
                "agent": changes.get("name", ""),
                "session_id": agent_id,
                "trace_id": "a" * 32,
                **changes,
                "limits": {**self._limits, **changes.get("limits", {})},
            }
        )
        return self.replace_authorization(authorization)

    def replace_authorization(self, authorization: Authorization) -> Authorization:
        """Replaces the authorization of an agent and notifies waiting callers."""
        self._agents[authorization.agent_id] = authorization
        self._notify(authorization.agent_id)
        return authorization

    def set_rights(self, agent_id: str, rights: Sequence[Right]) -> None:
        """Replaces the rights."""
        self.replace_authorization(replace(self._agents[agent_id], rights=tuple(rights)))

    def set_skills(self, agent_id: str, patterns: tuple[str, ...]) -> None:
        """Replaces the globs of the skills that it is told of."""
        self.replace_authorization(replace(self._agents[agent_id], skills=patterns))

    def remove(self, agent_id: str) -> None:
        """Ends the agent."""
        del self._agents[agent_id]
        self._notify(agent_id)

    def identify(self, bearer: str) -> Authorization:
        """Raises AccessDenied."""
        digest = hashlib.sha256(bearer.encode()).hexdigest()
        for authorization in self._agents.values():
            if authorization.token_sha256 == digest:
                return authorization
        raise AccessDenied("token", "the token is unknown, or its agent has ended")

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
        """Raises AccessDenied."""
        current = self._agents.get(caller.agent_id)
        if current is None or not find_allowing_right(
            current.rights, scope, operation, value, method=method, path=path
        ):
            raise AccessDenied(
                f"{scope} {operation}", f"no right of the agent allows {scope} {operation} here"
            )

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
        """Denies unless `approves` is set. Raises AccessDenied."""
        self.approval_requests.append((caller.agent_id, kind, value, dict(parameters)))
        if self.decided is not None:
            await self.decided.wait()
        if not self.approves:
            raise AccessDenied(f"approval {kind}", "the request needs an approval")

    def revocation(self, caller: Authorization) -> "asyncio.Future[None]":
        """Return a future that is done at the next `set_rights` or `remove`."""
        future = self._waiters.setdefault(
            caller.agent_id, asyncio.get_running_loop().create_future()
        )
        if caller.agent_id not in self._agents and not future.done():
            future.set_result(None)
        return future

    def report_denial(
        self, caller: Authorization, layer: Layer, rule: str, detail: str = ""
    ) -> None:
        """Appends to `refusals`."""
        self.refusals.append((caller.agent_id, layer, rule))

    def _notify(self, agent_id: str) -> None:
        if (future := self._waiters.pop(agent_id, None)) is not None and not future.done():
            future.set_result(None)
