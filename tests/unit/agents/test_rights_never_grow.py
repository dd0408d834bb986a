"""After any order of spawns, revocations and restarts no agent has a right its parent lacks."""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.agent_family import MANIFEST, NAMES
from support.host_configs import host_config
from support.plans import plan_of
from support.right_samples import BOUNDS, CHECKED, KERNEL, spec_of

from agentbox.agents.admission.admit import Requester
from agentbox.agents.authorization import metering
from agentbox.agents.authorization.revoker import GrantRevoker
from agentbox.agents.registry.admissions import admit_agent
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.store import AgentStore
from agentbox.contracts.orchestrator import AgentSpec, Constraint
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, PermissionDenied
from agentbox.gateway.authorization_cache import AuthorizationCache
from agentbox.gateway.authorizer import AccessDenied
from agentbox.policy.rights.grant_set import Grant
from agentbox.policy.rights.rights import find_allowing_right, to_policy

PLAN = plan_of(MANIFEST)


class RightsMachine(RuleBasedStateMachine):
    """Agents without processes: their rows, authorizations and what the gateway derives from them are the real ones."""

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
        self.config = host_config(
            Paths(self.folder),
            agents=PLAN.agents,
            policies=PLAN.policies,
            egress_allow=PLAN.reach.allow,
            max_depth=4,
        )
        self.tokens: dict[str, list[str]] = {}
        self.held: dict[str, frozenset[Any]] = {}
        self.bound: dict[str, int] = {}
        self.order: list[str] = []
        self.open()

    def open(self, entries: Mapping[str, AgentRecord] | None = None) -> None:
        store = AgentStore(self.config.state_dir)
        self.run(store.open())
        self.host = HostState(self.config, store, "mark")
        self.host.authorizations.entries = self.host.entries
        self.host.entries.update(
            entries or {one.agent_id: one for one in self.run(store.entries())}
        )
        self.revoking = GrantRevoker(self.host, self.host.entries, {})
        self.gateway = AuthorizationCache(self.config.paths)
        self.relay = self.runner.get_loop().create_task(self.told(self.host, self.gateway))
        self.pump()

    async def told(self, host: HostState, gateway: AuthorizationCache) -> None:
        """What a connection would carry."""
        async for change, _ in host.authorizations.subscribe():
            gateway._apply(json.loads(json.dumps(change)))

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def pump(self) -> None:
        """The gateway applies what agent-host has reported so far."""

        async def rounds() -> None:
            for _ in range(3):
                await asyncio.sleep(0)

        self.run(rounds())

    def spawned(self, spec: AgentSpec, principal: str = "urn:op") -> None:
        async def spawn() -> AgentRecord | None:
            try:
                entry, _ = admit_agent(
                    self.host, spec, Requester(principal=principal, request_id="r"), once=False
                )
            except AdapterError:
                return None
            self.host.entries[entry.agent_id] = entry
            await self.host.save_or_raise([entry], ())
            return entry

        if (entry := self.run(spawn())) is None:
            return
        self.order.append(entry.agent_id)
        for grant in entry.grant_set.grants:
            if grant.right.uses is not None:
                self.bound[grant.grant_id] = grant.right.uses
        self.generation_of(entry)
        self.held[entry.agent_id] = found = self.allowed(entry)
        if spec.parent_id is not None:
            assert found <= self.allowed(self.host.entries[spec.parent_id])

    def generation_of(self, entry: AgentRecord) -> None:
        self.tokens.setdefault(entry.agent_id, []).append(
            self.host.authorizations.issue_token(entry)
        )
        self.run(self.host.save_or_raise([entry], ()))
        self.pump()

    def allowed(self, entry: AgentRecord) -> frozenset[Any]:
        """By the gateway, and by what the kernel would enforce now."""
        who = self.gateway.identify(self.tokens[entry.agent_id][-1])

        async def asked() -> set[Any]:
            found = set()
            for scope, operation, value in CHECKED:
                try:
                    await self.gateway.check(who, scope, operation, value, consume=False)
                except AccessDenied:
                    continue
                found.add((scope, operation, value))
            return found

        policy = to_policy(entry.grant_set.kernel_rights(time.time()))
        return frozenset(self.run(asked())) | {one for one in KERNEL if policy.decide(*one)}

    def pick(self, at: int, among: list[str] | None = None) -> AgentRecord | None:
        found = self.order if among is None else among
        return self.host.entries[found[at % len(found)]] if found else None

    @rule(bounds=st.tuples(BOUNDS, BOUNDS, BOUNDS), size=st.integers(1, 3))
    def a_family_starts(self, bounds: tuple[list[Constraint], ...], size: int) -> None:
        """Each the child of the one before."""
        parent = None
        for name, mine in list(zip(NAMES, bounds, strict=True))[:size]:
            known = len(self.order)
            self.spawned(spec_of(name, parent, mine))
            if len(self.order) == known:
                assert parent or mine, "a root without constraints is admitted"
                return
            parent = self.order[-1]

    @rule(at=st.integers(0, 99), name=st.sampled_from(NAMES), bounds=BOUNDS, itself=st.booleans())
    def one_starts_a_child(
        self, at: int, name: str, bounds: list[Constraint], *, itself: bool
    ) -> None:
        if (parent := self.pick(at)) is not None:
            principal = f"urn:agentbox:agent:{parent.agent_id}" if itself else "urn:op"
            self.spawned(spec_of(name, parent.agent_id, bounds), principal)

    @rule(at=st.integers(0, 99), which=st.integers(0, 99))
    def a_grant_is_taken_back(self, at: int, which: int) -> None:
        if (found := self.decisive(at, which)) is not None:
            entry, grant, what = found
            self.run(self.revoking.revoke(entry, grant.grant_id, "urn:op"))
            self.gone(entry, what)

    @rule(at=st.integers(0, 99), which=st.integers(0, 99))
    def a_grant_reaches_its_end(self, at: int, which: int) -> None:
        if (found := self.decisive(at, which)) is not None:
            entry, grant, what = found
            past = replace(grant, right=replace(grant.right, expires_at=time.time() - 1))
            entry.grant_set = entry.grant_set.with_grant(past)
            self.run(self.revoking.revoke_expired())
            self.gone(entry, what)

    def decisive(self, at: int, which: int) -> tuple[AgentRecord, Grant, Any] | None:
        """An agent, parents first, something that it may do, and the grant by which it may."""
        parents = [
            one
            for one in self.order
            if any(each.spec.parent_id == one for each in self.host.entries.values())
        ]
        if (entry := self.pick(at, parents or self.order)) is None or not (
            can := sorted(self.allowed(entry))
        ):
            return None
        what = can[which % len(can)]
        rights = tuple(
            one.right for one in entry.grant_set.grants if not one.has_ended(time.time())
        )
        grant = entry.grant_set.find(find_allowing_right(rights, *what))
        return None if grant is None else (entry, grant, what)

    def gone(self, entry: AgentRecord, what: Any) -> None:
        """For it and all its descendants, unless another grant of the kernel's allows the same."""
        self.pump()
        if what in KERNEL and what in self.allowed(entry):
            return
        for one in self.host.entries.values():
            if one is entry or any(
                above is entry for above in self.host.authorizations.ancestors(one)
            ):
                assert what not in self.allowed(one)

    @rule(at=st.integers(0, 99), what=st.sampled_from(CHECKED))
    def one_uses_a_right(self, at: int, what: tuple[str, str, str]) -> None:
        """agent-host and gateway agree; a count is never passed, whoever below its holder uses it."""
        if (entry := self.pick(at)) is None:
            return
        asked = metering.Request(*what)
        chain = (entry, *self.host.authorizations.ancestors(entry))
        by = [
            one.grant_set.find(
                find_allowing_right(one.grant_set.checked_rights(time.time()), *what)
            )
            for one in chain
        ]
        try:
            self.run(metering.consume(self.host, entry.agent_id, entry.generation, asked))
        except PermissionDenied:
            assert what not in self.allowed(entry) or any(
                one is not None and one.exhausted_reason(time.time()) for one in by
            )
            return
        assert what in self.allowed(entry)
        for one, before in zip(chain, by, strict=True):
            assert before is not None
            after = one.grant_set.find(before.grant_id)
            assert after is not None
            assert after.used == before.used + 1 <= self.bound.get(after.grant_id, after.used)

    @rule(at=st.integers(0, 99))
    def a_process_is_started_again(self, at: int) -> None:
        if (entry := self.pick(at)) is not None:
            self.host.authorizations.revoke_token(entry)
            entry.generation += 1
            self.generation_of(entry)

    @rule()
    def agent_host_is_killed(self) -> None:
        """Only rows remain; every agent begins a new run."""
        used = {
            one.grant_id: one.used
            for each in self.host.entries.values()
            for one in each.grant_set.grants
            if one.right.uses
        }
        self.run(self.host.store.close())
        self.relay.cancel()
        self.open()
        assert set(self.host.entries) == set(self.order)
        for entry in self.host.entries.values():
            entry.generation += 1
            self.generation_of(entry)
            for one in entry.grant_set.grants:
                assert one.used >= used.get(one.grant_id, 0)

    @invariant()
    def nobody_gains(self) -> None:
        """Less and less for each agent, and never what the parent has not now."""
        for agent_id in getattr(self, "order", ()):
            entry = self.host.entries[agent_id]
            now = self.allowed(entry)
            assert now <= self.held[agent_id]
            self.held[agent_id] = now
            if entry.spec.parent_id is not None:
                assert now <= self.allowed(self.host.entries[entry.spec.parent_id])

    @invariant()
    def one_token_an_agent(self) -> None:
        """The last one names it and no other; all earlier ones name none."""
        for agent_id, tokens in getattr(self, "tokens", {}).items():
            assert self.gateway.identify(tokens[-1]).agent_id == agent_id
            for token in tokens[:-1]:
                try:
                    self.gateway.identify(token)
                except AccessDenied:
                    continue
                raise AssertionError("a token of an earlier life is known")

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.relay.cancel()
            self.run(self.host.store.close())
            self.runner.close()
            shutil.rmtree(self.folder)


TestLives = RightsMachine.TestCase
TestLives.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    phases=(Phase.generate,),  # reported as it was found: shrinking it takes minutes
    suppress_health_check=[HealthCheck.too_slow],
)
