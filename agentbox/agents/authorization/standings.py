"""Who holds what right now: one standing for each agent that runs, minted at its start, told to whoever follows."""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentbox.agents.registry.entry import Entry
from agentbox.policy.rights.standing import Ancestor, Standing
from agentbox.policy.rights.wire import standing_to_json

TOKEN_BYTES = 32
Change = Mapping[str, Any]


class Standings:
    """Used by one event loop. `entries` are all agents that are kept, by id."""

    def __init__(self) -> None:
        self.entries: Mapping[str, Entry] = {}
        self._live: dict[str, Standing] = {}
        self._followers: set[asyncio.Queue[Change]] = set()

    def mint(self, entry: Entry) -> str:
        """The bearer token of the life that starts now: 32 random bytes, of which only the hash is kept. Tokens of earlier
        lives are worth nothing from here on."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        entry.holding = replace(entry.holding, token_sha256=hashlib.sha256(token.encode()).hexdigest())
        self._live[entry.agent_id] = standing = self.of(entry)
        self._tell({"kind": "added", "standing": standing_to_json(standing)})
        return token

    def end(self, entry: Entry) -> None:
        """No process of it runs: its token is worth nothing."""
        entry.holding = replace(entry.holding, token_sha256="")
        if (standing := self._live.pop(entry.agent_id, None)) is not None:
            self._tell({"kind": "over", "agent_id": entry.agent_id, "generation": standing.generation})

    def changed(self, entry: Entry) -> None:
        """Its grants are others now: tells of it and of all that descend from it."""
        for agent_id in list(self._live):
            if agent_id == entry.agent_id or any(one is entry for one in self.ancestors(self.entries[agent_id])):
                self._live[agent_id] = standing = self.of(self.entries[agent_id])
                self._tell({"kind": "changed", "standing": standing_to_json(standing)})

    def live(self, agent_id: str) -> Standing | None:
        """None while no process of that agent runs."""
        return self._live.get(agent_id)

    def of(self, entry: Entry) -> Standing:
        """What it holds at this moment."""
        now, holding = time.time(), entry.holding
        return Standing(
            agent_id=entry.agent_id, generation=entry.generation, name=entry.spec.name, agent=holding.agent,
            state=entry.state_id, session_id=entry.session_id, trace_id=entry.trace_id, token_sha256=holding.token_sha256, profile=entry.spec.profile, parent_id=entry.spec.parent_id,
            rights=holding.asked_for(now), provider=holding.provider, budget=holding.budget,
            approval_required=holding.approval_required, children=holding.children,
            secrets=tuple(text for one in holding.secrets if not one.over(now) for text in one.right.patterns),
            limits=_limits(entry), ancestors=tuple(_ancestor(one, now) for one in self.ancestors(entry)),
        )  # fmt: skip

    def ancestors(self, entry: Entry) -> Iterator[Entry]:
        """Parent first. Raises KeyError (a bug) when one is no longer kept."""
        while (parent := entry.spec.parent_id) is not None:
            entry = self.entries[parent]
            yield entry

    def has_family(self, entry: Entry) -> bool:
        """Whether all of its ancestors are kept."""
        parent = entry.spec.parent_id
        return parent is None or (parent in self.entries and self.has_family(self.entries[parent]))

    async def follow(self) -> AsyncIterator[tuple[Change, int]]:
        """Every standing as `added`, then `whole`, then each change: added, changed, over. With each its size in bytes."""
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self._followers.add(queue)
        try:
            for standing in list(self._live.values()):
                queue.put_nowait({"kind": "added", "standing": standing_to_json(standing)})
            queue.put_nowait({"kind": "whole"})
            while True:
                change = await queue.get()
                yield change, len(json.dumps(change))
        finally:
            self._followers.discard(queue)

    def _tell(self, change: Change) -> None:
        for queue in self._followers:
            queue.put_nowait(change)


def _limits(entry: Entry) -> Mapping[str, Any]:
    """Those of the gateway are of the table alone; those of the process are as they were lowered."""
    return {**entry.holding.limits, **entry.limits.to_wire()}


def _ancestor(entry: Entry, now: float) -> Ancestor:
    holding = entry.holding
    return Ancestor(
        agent_id=entry.agent_id, name=entry.spec.name, agent=holding.agent, budget=holding.budget, rights=holding.asked_for(now),
        egress=_limits(entry).get("egress"),
    )  # fmt: skip
