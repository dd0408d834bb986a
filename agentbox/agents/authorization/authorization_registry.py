"""Authorizations of running agents: issued at the start of each generation, published to
subscribers."""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.policy.rights.authorization import Ancestor, Authorization
from agentbox.policy.rights.wire import authorization_to_json

TOKEN_BYTES = 32
Change = Mapping[str, Any]


class AuthorizationRegistry:
    """Used by one event loop. `entries` are all stored agents, by id."""

    def __init__(self) -> None:
        self.entries: Mapping[str, AgentRecord] = {}
        self._active: dict[str, Authorization] = {}
        self._subscribers: set[asyncio.Queue[Change]] = set()

    def issue_token(self, entry: AgentRecord) -> str:
        """Issue the bearer token of the starting generation: 32 random bytes, of which only the
        hash is kept. Tokens of earlier generations become invalid."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        entry.grant_set = replace(
            entry.grant_set, token_sha256=hashlib.sha256(token.encode()).hexdigest()
        )
        self._active[entry.agent_id] = authorization = self.build(entry)
        self._publish({"kind": "added", "authorization": authorization_to_json(authorization)})
        return token

    def revoke_token(self, entry: AgentRecord) -> None:
        """No process of the agent runs: its token becomes invalid."""
        entry.grant_set = replace(entry.grant_set, token_sha256="")
        if (authorization := self._active.pop(entry.agent_id, None)) is not None:
            self._publish(
                {"kind": "over", "agent_id": entry.agent_id, "generation": authorization.generation}
            )

    def refresh(self, entry: AgentRecord) -> None:
        """The grants have changed: publish the agent and all its running descendants."""
        for agent_id in list(self._active):
            if agent_id == entry.agent_id or any(
                ancestor is entry for ancestor in self.ancestors(self.entries[agent_id])
            ):
                self._active[agent_id] = authorization = self.build(self.entries[agent_id])
                self._publish(
                    {"kind": "changed", "authorization": authorization_to_json(authorization)}
                )

    def active(self, agent_id: str) -> Authorization | None:
        """None while no process of that agent runs."""
        return self._active.get(agent_id)

    def build(self, entry: AgentRecord) -> Authorization:
        """The authorization as of now."""
        now, grant_set = time.time(), entry.grant_set
        return Authorization(
            agent_id=entry.agent_id,
            generation=entry.generation,
            name=entry.spec.name,
            agent=grant_set.agent,
            state=entry.state_id,
            session_id=entry.session_id,
            trace_id=entry.trace_id,
            token_sha256=grant_set.token_sha256,
            profile=entry.spec.profile,
            parent_id=entry.spec.parent_id,
            rights=grant_set.rights_and_secrets(now),
            provider=grant_set.provider,
            budget=grant_set.budget,
            approval_required=grant_set.approval_required,
            children=grant_set.children,
            skills=grant_set.skills,
            mcp=grant_set.mcp,
            secrets=tuple(
                text
                for grant in grant_set.secrets
                if not grant.has_ended(now)
                for text in grant.right.patterns
            ),
            limits=_limits(entry),
            ancestors=tuple(_ancestor(ancestor, now) for ancestor in self.ancestors(entry)),
        )

    def ancestors(self, entry: AgentRecord) -> Iterator[AgentRecord]:
        """Parent first. Raises KeyError (a bug) if one is no longer stored."""
        while (parent := entry.spec.parent_id) is not None:
            entry = self.entries[parent]
            yield entry

    def has_all_ancestors(self, entry: AgentRecord) -> bool:
        """Whether all of its ancestors are stored."""
        parent = entry.spec.parent_id
        return parent is None or (
            parent in self.entries and self.has_all_ancestors(self.entries[parent])
        )

    async def subscribe(self) -> AsyncIterator[tuple[Change, int]]:
        """Yield every authorization as `added`, then `whole`, then each change: added, changed,
        over. Each with its size in bytes."""
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self._subscribers.add(queue)
        try:
            for authorization in list(self._active.values()):
                queue.put_nowait(
                    {"kind": "added", "authorization": authorization_to_json(authorization)}
                )
            queue.put_nowait({"kind": "whole"})
            while True:
                change = await queue.get()
                yield change, len(json.dumps(change))
        finally:
            self._subscribers.discard(queue)

    def _publish(self, change: Change) -> None:
        for queue in self._subscribers:
            queue.put_nowait(change)


def _limits(entry: AgentRecord) -> Mapping[str, Any]:
    """Limits of the gateway from the table, those of the process as lowered by the spec."""
    return {**entry.grant_set.limits, **entry.limits.to_wire()}


def _ancestor(entry: AgentRecord, now: float) -> Ancestor:
    grant_set = entry.grant_set
    return Ancestor(
        agent_id=entry.agent_id,
        name=entry.spec.name,
        agent=grant_set.agent,
        budget=grant_set.budget,
        rights=grant_set.rights_and_secrets(now),
        egress=_limits(entry).get("egress"),
    )
