"""Which state a new agent uses, who may use one by its name, and how one ends."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.store import Store
from agentbox.agents.states.state import OPERATOR, SHARED, State
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import NameTaken, NotFound, PermissionDenied, StateBusy, StateNotYours
from agentbox.policy.rights.standing import PRINCIPAL

_SHOWN: Final = 3


class States:
    """Used by one event loop. Named states are known by name; the state of a run is read from the store when it is asked for."""

    def __init__(self, store: Store, entries: Mapping[str, Entry]) -> None:
        self._store, self._entries = store, entries
        self._named: dict[str, State] = {}
        self._removed: set[str] = set()

    async def load(self) -> None:
        """What an earlier process kept."""
        self._named = {one.name: one for one in await self._store.states("name IS NOT NULL") if one.name}
        self._removed = {one.state_id for one in await self._store.states("removed")}

    def of_agent(
        self, spec: AgentSpec, table: Mapping[str, Any] | None, agent_id: str, *, owner: str, admin: bool, given: str
    ) -> State:
        """The state of a new agent: that of its name, that which its table shares, the one `given` by the task that it is an
        attempt of, or one of its own. Takes the name at once; the store has it when the agent is admitted. Raises StateNotYours,
        PermissionDenied."""
        name = spec.state or (f"{SHARED}{spec.agent}" if table and table["state"] == "shared" else None)
        if spec.state and owner.startswith(PRINCIPAL):
            raise PermissionDenied("cannot use a state by its name: an agent has its own", scope="agents:write")
        known = self._named.get(name) if name else None
        if known is not None:
            if spec.state:
                check_owner(known, owner, admin=admin)
            return replace(known, used=time.time())
        fresh = uuid7() if name or given in self._removed else given or agent_id
        state = self._new(fresh, name, owner if spec.state or not name else OPERATOR, spec.name, agent_id)
        if name:
            self._named[name] = state
        return state

    def withdraw(self, entry: Entry) -> bool:
        """Its agent never ran. True when the state goes with it: the agent was its first, and nobody else uses it."""
        used = any(one.state_id == entry.state_id for one in self._entries.values())
        named = next((one for one in self._named.values() if one.state_id == entry.state_id), None)
        if used or (named is not None and named.first != entry.agent_id):
            return False
        if named is not None and named.name:
            del self._named[named.name]
        return True

    async def find(self, name_or_id: str) -> State:
        """Where a name looks like the id of another state, the id counts. Raises NotFound."""
        named = self._named.get(name_or_id)
        for state_id in (name_or_id, *(() if named is None else (named.state_id,))):
            for state in await self._store.states("state_id = ? AND NOT removed", state_id):
                return state
        raise NotFound(f"cannot find state {name_or_id}", resource="state", id=name_or_id)

    async def page(self, owner: str, after: str, limit: int) -> list[State]:
        """In order of id; `owner` "" means everybody's."""
        where = "NOT removed AND state_id > ? AND (? = '' OR owner = ?) ORDER BY state_id LIMIT ?"
        return await self._store.states(where, after, owner, owner, limit)

    async def due(self, before: float, limit: int) -> list[State]:
        """Those whose data is to be removed: states of runs that were used last before that moment, and what a removal that
        did not end has left. No run of them lives."""
        where = "removed OR (name IS NULL AND used < ?) ORDER BY used LIMIT ?"
        found = await self._store.states(where, before, limit + len(self._busy()))
        busy = self._busy()
        idle = [one for one in found if one.state_id not in busy][:limit]
        self._removed.update(one.state_id for one in idle)
        for state in idle:
            await self._store.detach_state(state.state_id)
        return idle

    async def remove(self, name_or_id: str, owner: str, *, admin: bool) -> State:
        """Detaches it: no run uses it again, its name is free, and its data may go. Raises NotFound, StateNotYours,
        StateBusy."""
        state = await self.find(name_or_id)
        check_owner(state, owner, admin=admin)
        if living := sorted(self.living(state.state_id)):
            more = f" and {len(living) - _SHOWN} more" if len(living) > _SHOWN else ""
            raise StateBusy(
                f"cannot remove state {state.name or state.state_id}: {', '.join(living[:_SHOWN])}{more} of it lives",
                hint="end these agents first", id=state.state_id, agents=living,
            )  # fmt: skip
        if state.name:
            self._named.pop(state.name, None)
        self._removed.add(state.state_id)
        await self._store.detach_state(state.state_id)
        return state

    async def forget(self, state_id: str) -> None:
        """Its data is gone."""
        if state_id in self._removed:
            await self._store.delete_state(state_id)
            self._removed.discard(state_id)

    async def adopt(self, name: str, source: str, owner: str) -> State:
        """A new state of that name for what is taken over from `source`; the same one where that was begun before. Raises
        NameTaken."""
        known = self._named.get(name)
        if known is not None and known.source != source:
            raise NameTaken(
                f"cannot adopt {source} as {name}: there is a state of this name",
                hint="choose another name, or reset that state first", name=name,
            )  # fmt: skip
        state = known or replace(self._new(uuid7(), name, owner, source, ""), source=source)
        self._named[name] = state
        await self._store.add_state(state)
        return state

    def living(self, state_id: str) -> Iterator[str]:
        """Ids of the agents that use it now."""
        return (one.agent_id for one in self._entries.values() if one.state_id == state_id and not one.over)

    def _busy(self) -> set[str]:
        return {one.state_id for one in self._entries.values() if not one.over}

    def _new(self, state_id: str, name: str | None, owner: str, label: str, first: str) -> State:
        now = time.time()
        return State(state_id=state_id, name=name, owner=owner, label=label, first=first, created=now, used=now)


def check_owner(state: State, owner: str, *, admin: bool) -> None:
    """Raises StateNotYours."""
    if not admin and owner != state.owner:
        raise StateNotYours(
            f"cannot use state {state.name or state.state_id}: another token made it",
            hint="use another name, or ask an admin", id=state.state_id,
        )  # fmt: skip
