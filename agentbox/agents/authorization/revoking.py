"""Grants that are taken back, by an operator or by their time, with all that was derived from them."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from agentbox.agents.admission import injected_env
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.agents.registry.store import Happening
from agentbox.agents.runs.life import Life
from agentbox.core.slot_errors import AdapterError, InvalidTransition, NotFound
from agentbox.policy.rights.holding import Grant
from agentbox.policy.rights.narrowing import lost

log = structlog.get_logger()
_LONGEST_SLEEP = 3600.0  # seconds: the clock may be set meanwhile


class Revoking:
    """`entries` are all agents that are kept, `lives` those that are not over."""

    def __init__(self, host: Host, entries: Mapping[str, Entry], lives: Mapping[str, Life]) -> None:
        self._host, self._entries, self._lives = host, entries, lives
        self._sooner = asyncio.Event()
        self._ended: set[str] = set()  # grants whose end was told

    async def revoke(self, entry: Entry, grant_id: str, principal: str) -> None:
        """For good. Told to the checkers at once, kept before this returns. Raises NotFound, InvalidTransition for a denial,
        and the error of a disk that does not keep it."""
        grant = entry.holding.find(grant_id)
        if grant is None:
            raise NotFound(f"cannot find grant {grant_id}", resource="grant", id=grant_id)
        if grant.right.mode == "deny":
            members: dict[str, Any] = {"id": grant_id, "from": "deny", "to": "revoked", "blockers": []}
            raise InvalidTransition("cannot take a denial back: that would give a right", **members)
        if grant.revoked:
            return
        entry.holding = entry.holding.with_grant(replace(grant, revoked=True))
        await self._without(entry, [grant], principal)

    def watch(self, entry: Entry) -> None:
        """A new agent: its grants may end sooner than those known. Where none of them ends, nobody is woken, since that
        looks at every grant of every agent."""
        if any(one.right.expires_at is not None for one in entry.holding.all_grants()):
            self._sooner.set()

    async def end_in_time(self) -> None:
        """Until cancelled: each grant that reaches its end is told as one that was taken back."""
        while True:
            self._sooner.clear()
            await self.end_what_is_past()
            await self._sleep()

    async def end_what_is_past(self) -> None:
        """Tells of every grant whose end has come since the last look."""
        now = time.time()
        for entry in list(self._entries.values()):
            past = [one for one in entry.holding.all_grants() if not one.revoked and self._past(one, now)]
            if past:
                self._ended.update(one.grant_id for one in past)
                try:
                    await self._without(entry, past, "")
                except AdapterError as error:  # its end is in its row already
                    log.error("end of grants is not recorded", agent_id=entry.agent_id, reason=error.message)

    async def _sleep(self) -> None:
        now = time.time()
        ends = [entry.holding.next_end(now) for entry in self._entries.values() if not entry.over]
        soonest = min((end for end in ends if end is not None), default=now + _LONGEST_SLEEP)
        try:
            async with asyncio.timeout(min(_LONGEST_SLEEP, max(0.0, soonest - now))):
                await self._sooner.wait()
        except TimeoutError:
            return

    def _past(self, grant: Grant, now: float) -> bool:
        return grant.right.mode == "allow" and grant.over(now) and grant.grant_id not in self._ended

    async def _without(self, entry: Entry, grants: Iterable[Grant], principal: str) -> None:
        changed = {entry.agent_id: list(grants)}
        self._derived(entry, changed, time.time())
        self._host.standings.changed(entry)
        happened = [self._take(self._entries[agent_id], gone, principal) for agent_id, gone in changed.items()]
        told = [one for group in happened for one in group]
        await self._host.keep([self._entries[agent_id] for agent_id in changed], told)

    def _derived(self, parent: Entry, changed: dict[str, list[Grant]], now: float) -> None:
        """What descendants hold of the kernel's, and of secrets, that nothing above them covers any more. All else is asked
        for with each use, all the way up."""
        for child in self._entries.values():
            if child.spec.parent_id == parent.agent_id:
                if gone := lost(child.holding, parent.holding, now):
                    for grant in gone:
                        child.holding = child.holding.with_grant(replace(grant, revoked=True))
                    changed.setdefault(child.agent_id, []).extend(gone)
                self._derived(child, changed, now)

    def _take(self, entry: Entry, grants: Iterable[Grant], principal: str) -> list[Happening]:
        """Secrets lose their files; a process that the kernel would still let is ended."""
        found, part = [], False
        secrets = {one.grant_id for one in entry.holding.secrets}
        for grant in grants:
            if grant.grant_id in secrets:
                injected_env.take_back(self._host.config.paths, entry.agent_id, grant.right.patterns[0])
            part = part or (grant.grant_id not in secrets and entry.holding.ends_with(grant))
            data = {"name": entry.spec.name, "grant_id": grant.grant_id, "scope": grant.right.scope, "by": principal}
            found.append(Happening("policy.grant.revoked", entry.agent_id, data))
        if part and (life := self._lives.get(entry.agent_id)) is not None:
            life.part()
        return found
