"""States over HTTP: visible to and removable by their creator and admins."""

import re
from collections.abc import Mapping
from typing import Any

from agentbox.adapters.runtime.slots import Slots
from agentbox.api import state_data
from agentbox.api.auth.authentication import Caller, require
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.states import (
    ADOPTED_NAME,
    LEGACY_NAME,
    AdoptBody,
    StateHolds,
    States,
)
from agentbox.core.http.problems import invalid
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound


class StateHandlers:
    """agent-host stores the states, the slots their data."""

    def __init__(self, slots: Slots, plans: PlanSource) -> None:
        self._slots, self._plans = slots, plans

    async def list_states(
        self, caller: Caller, limit: int, cursor: str | None, legacy: bool
    ) -> States:
        """Admins see all states, and with `legacy` also data from before states existed."""
        rows = await self._slots.agent_host.list_states(
            owner="" if caller.has_scope("admin") else caller.principal,
            after=cursor or "",
            limit=limit + 1,
        )
        names: list[str] = []
        if legacy:
            require(caller, ("admin",))
            names = await state_data.legacy_names(self._slots)
        return States(
            items=rows[:limit],
            next_cursor=rows[limit - 1].state_id if len(rows) > limit else None,
            legacy=tuple(names),
        )

    async def show(self, caller: Caller, id: str) -> Mapping[str, Any]:
        """By id or name."""
        state = await self._slots.agent_host.get_state(
            id, principal=caller.principal, admin=caller.has_scope("admin")
        )
        location = state_data.state_location(state.state_id)
        contents = await state_data.count_contents(self._slots, location)
        return {**to_wire(state), "holds": to_wire(contents)}

    async def remove(self, caller: Caller, id: str) -> StateHolds:
        """409 `state-busy` while a run uses it. Data in an unavailable slot is removed later."""
        state = await self._slots.agent_host.remove_state(
            id, principal=caller.principal, admin=caller.has_scope("admin")
        )
        return await state_data.remove_detached(
            self._slots, state, caller.principal, report_empty=True
        )

    async def adopt(self, caller: Caller, source: AdoptBody) -> Mapping[str, Any]:
        """409 `name-taken` where that name has another state. May be repeated after an
        interruption.
        """
        await self._check_adoption(source)
        state = await self._slots.agent_host.adopt_state(
            name=source.name, source=source.source, principal=caller.principal
        )
        moved = await state_data.move(
            self._slots,
            state_data.legacy_location(source.source),
            state_data.state_location(state.state_id),
        )
        data = {
            "state_id": state.state_id,
            "name": source.name,
            "source": source.source,
            "by": caller.principal,
        }
        await self._slots.journal.record("state.adopted", {**data, **to_wire(moved)})
        return {**to_wire(state), "holds": to_wire(moved)}

    async def _check_adoption(self, body: AdoptBody) -> None:
        for name, pattern in (("source", LEGACY_NAME), ("name", ADOPTED_NAME)):
            if not re.fullmatch(pattern, getattr(body, name)):
                raise invalid(
                    f"/{name}",
                    "is not a valid state name" if name == "name" else "must be legacy.<agent>",
                )
        agent = body.name.removeprefix("agents.")
        if agent != body.name and agent not in self._plans.current.agents:
            raise NotFound(
                f"cannot find the agent {agent} in the manifest", resource="agent", id=agent
            )
        if body.source not in await state_data.legacy_names(self._slots):
            raise NotFound(f"cannot find {body.source}", resource="state", id=body.source)
