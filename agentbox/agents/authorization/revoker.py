"""Revokes grants, by an operator or on expiry, with all grants derived from them."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.runs import injected_env
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.core.slot_errors import AdapterError, InvalidTransition, NotFound
from agentbox.policy.rights.delegation import uncovered_grants
from agentbox.policy.rights.grant_set import Grant

log = structlog.get_logger()
_MAX_SLEEP = 3600.0  # seconds; the clock may be changed meanwhile


class GrantRevoker:
    """`entries` are all stored agents, `runners` those that have not ended."""

    def __init__(
        self,
        host: HostState,
        entries: Mapping[str, AgentRecord],
        runners: Mapping[str, AgentRunner],
    ) -> None:
        self._host, self._entries, self._runners = host, entries, runners
        self._wake = asyncio.Event()
        self._reported: set[str] = set()  # grants whose expiry was reported

    async def revoke(self, entry: AgentRecord, grant_id: str, principal: str) -> None:
        """Revoke permanently. Published to the checkers at once, stored before this returns. Raises
        NotFound, InvalidTransition for a denial, and the error of the disk."""
        grant = entry.grant_set.find(grant_id)
        if grant is None:
            raise NotFound(f"cannot find grant {grant_id}", resource="grant", id=grant_id)
        if grant.right.mode == "deny":
            members: dict[str, Any] = {
                "id": grant_id,
                "from": "deny",
                "to": "revoked",
                "blockers": [],
            }
            raise InvalidTransition("cannot revoke a denial: that would grant a right", **members)
        if grant.revoked:
            return
        entry.grant_set = entry.grant_set.with_grant(replace(grant, revoked=True))
        await self._apply(entry, [grant], principal)

    def watch(self, entry: AgentRecord) -> None:
        """Add a new agent, whose grants may expire earlier than the known ones. Without an expiry
        nothing is woken, since a check visits every grant of every agent."""
        if any(grant.right.expires_at is not None for grant in entry.grant_set.all_grants()):
            self._wake.set()

    async def run(self) -> None:
        """Run until cancelled: report each grant that expires as revoked."""
        while True:
            self._wake.clear()
            await self.revoke_expired()
            await self._sleep()

    async def revoke_expired(self) -> None:
        """Revoke every grant that has expired since the last check."""
        now = time.time()
        for entry in list(self._entries.values()):
            expired = [
                grant
                for grant in entry.grant_set.all_grants()
                if not grant.revoked and self._is_newly_expired(grant, now)
            ]
            if expired:
                self._reported.update(grant.grant_id for grant in expired)
                try:
                    await self._apply(entry, expired, "")
                except AdapterError as error:  # the expiry is stored already
                    log.error(
                        "cannot record expired grants",
                        agent_id=entry.agent_id,
                        reason=error.message,
                    )

    async def _sleep(self) -> None:
        now = time.time()
        ends = [
            entry.grant_set.next_expiry(now) for entry in self._entries.values() if not entry.over
        ]
        next_end = min((end for end in ends if end is not None), default=now + _MAX_SLEEP)
        try:
            async with asyncio.timeout(min(_MAX_SLEEP, max(0.0, next_end - now))):
                await self._wake.wait()
        except TimeoutError:
            return

    def _is_newly_expired(self, grant: Grant, now: float) -> bool:
        return (
            grant.right.mode == "allow"
            and grant.has_ended(now)
            and grant.grant_id not in self._reported
        )

    async def _apply(self, entry: AgentRecord, grants: Iterable[Grant], principal: str) -> None:
        changed = {entry.agent_id: list(grants)}
        self._revoke_derived(entry, changed, time.time())
        self._host.authorizations.refresh(entry)
        event_groups = [
            self._enforce(self._entries[agent_id], revoked, principal)
            for agent_id, revoked in changed.items()
        ]
        events = [event for group in event_groups for event in group]
        await self._host.save_or_raise([self._entries[agent_id] for agent_id in changed], events)

    def _revoke_derived(
        self, parent: AgentRecord, changed: dict[str, list[Grant]], now: float
    ) -> None:
        """Revoke kernel-enforced grants and secrets of descendants that are no longer covered by
        their ancestors. All other rights are checked at each use, up to the root."""
        for child in self._entries.values():
            if child.spec.parent_id == parent.agent_id:
                if uncovered := uncovered_grants(child.grant_set, parent.grant_set, now):
                    for grant in uncovered:
                        child.grant_set = child.grant_set.with_grant(replace(grant, revoked=True))
                    changed.setdefault(child.agent_id, []).extend(uncovered)
                self._revoke_derived(child, changed, now)

    def _enforce(
        self, entry: AgentRecord, grants: Iterable[Grant], principal: str
    ) -> list[LifecycleEvent]:
        """Delete the files of secrets; end a process whose rights the kernel still enforces."""
        events, must_end = [], False
        secrets = {secret.grant_id for secret in entry.grant_set.secrets}
        for grant in grants:
            if grant.grant_id in secrets:
                injected_env.remove_secret(
                    self._host.config.paths, entry.agent_id, grant.right.patterns[0]
                )
            must_end = must_end or (
                grant.grant_id not in secrets and entry.grant_set.requires_restart(grant)
            )
            data = {
                "name": entry.spec.name,
                "grant_id": grant.grant_id,
                "scope": grant.right.scope,
                "by": principal,
            }
            events.append(LifecycleEvent("policy.grant.revoked", entry.agent_id, data))
        if must_end and (runner := self._runners.get(entry.agent_id)) is not None:
            runner.end_generation()
        return events
