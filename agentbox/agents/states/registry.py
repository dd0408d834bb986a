"""Assigns states to agents, checks access to named states, and removes states."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.store import AgentStore
from agentbox.agents.states.state import OPERATOR, SHARED_PREFIX, StoredState
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import (
    NameTaken,
    NotFound,
    PermissionDenied,
    StateBusy,
    StateNotOwned,
)
from agentbox.plan.tables import AgentPlan
from agentbox.policy.rights.authorization import PRINCIPAL

_MAX_LISTED: Final = 3


class StateRegistry:
    """Used by one event loop. Named states are kept in memory; those of runs are read from the
    store."""

    def __init__(self, store: AgentStore, entries: Mapping[str, AgentRecord]) -> None:
        self._store, self._entries = store, entries
        self._by_name: dict[str, StoredState] = {}
        self._removed: set[str] = set()

    async def load(self) -> None:
        """Load what an earlier process stored."""
        self._by_name = {
            state.name: state
            for state in await self._store.states("name IS NOT NULL")
            if state.name
        }
        self._removed = {state.state_id for state in await self._store.states("removed")}

    def assign(
        self,
        spec: AgentSpec,
        table: AgentPlan | None,
        agent_id: str,
        *,
        owner: str,
        admin: bool,
        task_state_id: str,
    ) -> StoredState:
        """The state of a new agent: the one named in its spec, that of its table, `task_state_id`
        of its task, or a new one. Reserves the name at once; the store has it once the agent is
        admitted. Raises StateNotYours, PermissionDenied."""
        name = spec.state or (
            f"{SHARED_PREFIX}{spec.agent}" if table and table.state == "shared" else None
        )
        if spec.state and owner.startswith(PRINCIPAL):
            raise PermissionDenied(
                "cannot use a state by name: agents use their own", scope="agents:write"
            )
        existing = self._by_name.get(name) if name else None
        if existing is not None:
            if spec.state:
                check_owner(existing, owner, admin=admin)
            return replace(existing, used=time.time())
        new_id = uuid7() if name or task_state_id in self._removed else task_state_id or agent_id
        state = self._new(
            new_id, name, owner if spec.state or not name else OPERATOR, spec.name, agent_id
        )
        if name:
            self._by_name[name] = state
        return state

    def roll_back(self, entry: AgentRecord) -> bool:
        """Undo `assign` for an agent that never ran. True if the state is deleted too: it was new
        and nobody else uses it."""
        is_used = any(other.state_id == entry.state_id for other in self._entries.values())
        state_name = next(
            (other for other in self._by_name.values() if other.state_id == entry.state_id), None
        )
        if is_used or (state_name is not None and state_name.first != entry.agent_id):
            return False
        if state_name is not None and state_name.name:
            del self._by_name[state_name.name]
        return True

    async def find(self, name_or_id: str) -> StoredState:
        """An id takes precedence over a name. Raises NotFound."""
        state_name = self._by_name.get(name_or_id)
        for state_id in (name_or_id, *(() if state_name is None else (state_name.state_id,))):
            for state in await self._store.states("state_id = ? AND NOT removed", state_id):
                return state
        raise NotFound(f"cannot find state {name_or_id}", resource="state", id=name_or_id)

    async def page(self, owner: str, after: str, limit: int) -> list[StoredState]:
        """In order of id; `owner` "" means all owners."""
        where = "NOT removed AND state_id > ? AND (? = '' OR owner = ?) ORDER BY state_id LIMIT ?"
        return await self._store.states(where, after, owner, owner, limit)

    async def due(self, before: float, limit: int) -> list[StoredState]:
        """Detach and return states whose data must be removed: those of runs last used before that
        time, and those of incomplete removals. No agent uses them."""
        where = "removed OR (name IS NULL AND used < ?) ORDER BY used LIMIT ?"
        candidates = await self._store.states(where, before, limit + len(self._used_ids()))
        used_ids = self._used_ids()
        unused = [candidate for candidate in candidates if candidate.state_id not in used_ids][
            :limit
        ]
        self._removed.update(candidate.state_id for candidate in unused)
        for state in unused:
            await self._store.detach_state(state.state_id)
        return unused

    async def remove(self, name_or_id: str, owner: str, *, admin: bool) -> StoredState:
        """Detach it: no run uses it again, its name is free, and its data may be removed. Raises
        NotFound, StateNotYours, StateBusy."""
        state = await self.find(name_or_id)
        check_owner(state, owner, admin=admin)
        if running := sorted(self.running_agents(state.state_id)):
            suffix = f" and {len(running) - _MAX_LISTED} more" if len(running) > _MAX_LISTED else ""
            raise StateBusy(
                f"cannot remove state {state.name or state.state_id}: "
                f"in use by {', '.join(running[:_MAX_LISTED])}{suffix}",
                hint="end these agents first",
                id=state.state_id,
                agents=running,
            )
        if state.name:
            self._by_name.pop(state.name, None)
        self._removed.add(state.state_id)
        await self._store.detach_state(state.state_id)
        return state

    async def discard(self, state_id: str) -> None:
        """Delete the state after its data was removed."""
        if state_id in self._removed:
            await self._store.delete_state(state_id)
            self._removed.discard(state_id)

    async def adopt(self, name: str, source: str, owner: str) -> StoredState:
        """A new state of that name for data adopted from `source`; repeated calls return the same
        state. Raises NameTaken."""
        existing = self._by_name.get(name)
        if existing is not None and existing.source != source:
            raise NameTaken(
                f"cannot adopt {source} as {name}: the name is taken",
                hint="choose another name, or reset that state first",
                name=name,
            )
        state = existing or replace(self._new(uuid7(), name, owner, source, ""), source=source)
        self._by_name[name] = state
        await self._store.add_state(state)
        return state

    def running_agents(self, state_id: str) -> Iterator[str]:
        """Ids of the agents that use it now."""
        return (
            entry.agent_id
            for entry in self._entries.values()
            if entry.state_id == state_id and not entry.over
        )

    def _used_ids(self) -> set[str]:
        return {entry.state_id for entry in self._entries.values() if not entry.over}

    def _new(
        self, state_id: str, name: str | None, owner: str, label: str, first: str
    ) -> StoredState:
        now = time.time()
        return StoredState(
            state_id=state_id,
            name=name,
            owner=owner,
            label=label,
            first=first,
            created=now,
            used=now,
        )


def check_owner(state: StoredState, owner: str, *, admin: bool) -> None:
    """Raises StateNotYours."""
    if not admin and owner != state.owner:
        raise StateNotOwned(
            f"cannot use state {state.name or state.state_id}: it belongs to another token",
            hint="use another name, or ask an admin",
            id=state.state_id,
        )
