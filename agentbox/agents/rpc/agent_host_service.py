"""`AgentHost` on the state of this host, as far as operations return once. Records that are stored
as JSON are returned as it. The data of a state is in the slots, which agent-host cannot reach: the
caller removes or moves it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal, cast

from agentbox.agents.authorization import metering
from agentbox.agents.canaries import SandboxCanaryRunner
from agentbox.agents.errors import invalid
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.review.commits.reading import TakenCommits
from agentbox.agents.rpc.sandbox_service import SandboxService
from agentbox.agents.sandboxes.manager import SandboxManager
from agentbox.agents.states.registry import check_owner
from agentbox.agents.states.state import StoredState
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.contracts.agent_host.denials import DenialCounts
from agentbox.contracts.review_commits import CommitsFileName
from agentbox.core.slot_errors import PermissionDenied
from agentbox.policy.patterns.scopes import Scope

_Document = Mapping[str, Any]
_RECORD_LIMIT = 1000
_MAX_WAIT = 60.0  # seconds of one call that waits


class AgentHostService(SandboxService):
    """Reviews, approvals, states, sandboxes, lifecycle record, metering, denials, canaries."""

    def __init__(
        self, host: HostState, canaries: SandboxCanaryRunner, sandboxes: SandboxManager
    ) -> None:
        super().__init__(host, sandboxes)
        self._canaries = canaries

    async def list_reviews(self) -> list[_Document]:
        summaries = self._host.reviews.page()
        return [self._with_usage(one) for one in summaries if self._is_visible(one["agent_id"])]

    async def show_review(self, agent_id: str, *, at: int, limit: int) -> _Document:
        page = await self._host.reviews.show(agent_id, at, limit)
        return {**page, "summary": self._with_usage(page["summary"])}

    def _with_usage(self, summary: _Document) -> _Document:
        entry = self._host.authorizations.entries.get(summary["agent_id"])
        return {**summary, "usage": {} if entry is None else entry.run_usage()}

    async def commit_review(self, agent_id: str, *, digest: str, by: str) -> _Document:
        return await self._host.reviews.commit(agent_id, digest, by)

    async def discard_review(self, agent_id: str, *, by: str) -> _Document:
        return await self._host.reviews.discard(agent_id, by)

    async def show_commits(self, agent_id: str, *, at: int, limit: int) -> _Document:
        return await self._host.reviews.commits.show(agent_id, at, limit)

    async def read_commits(
        self, agent_id: str, *, name: CommitsFileName, at: int, limit: int
    ) -> _Document:
        return await self._host.reviews.commits.read(agent_id, name, at, limit)

    async def end_review(
        self, agent_id: str, *, digest: str, tip: str, ref: str, with_rest: bool, by: str
    ) -> _Document:
        taken = TakenCommits(tip=tip, ref=ref, with_rest=with_rest)
        return await self._host.reviews.end_with_commits(agent_id, digest, taken, by)

    async def request_approval(
        self,
        agent_id: str,
        generation: int,
        *,
        kind: str,
        value: str,
        parameters: _Document,
        words: str,
        hold: bool,
    ) -> None:
        authorization = self._host.authorizations.active(agent_id)
        if authorization is None or authorization.generation != generation:
            raise PermissionDenied("approval required: the agent is not running", scope="approvals")
        seconds = authorization.limits["approval_timeout_seconds"]
        ancestors = authorization.ancestors
        await self._host.approvals.request_approval(
            (agent_id, authorization.name),
            kind,
            value,
            dict(parameters),
            words,
            float(seconds),
            hold=hold,
            family=ancestors[-1].agent_id if ancestors else agent_id,
        )

    async def list_approvals(self) -> list[_Document]:
        return [*self._host.approvals.page(self._is_visible)]

    async def get_approval(self, id: str) -> _Document:
        return self._host.approvals.get(id).describe()

    async def decide_approval(
        self, id: str, *, verdict: Literal["approve", "deny"], reason: str, by: str
    ) -> _Document:
        return await self._host.approvals.decide(
            id, approve=verdict == "approve", reason=reason, by=by
        )

    async def list_states(self, *, owner: str, after: str, limit: int) -> list[_Document]:
        return [self._row(state) for state in await self._host.states.page(owner, after, limit)]

    async def get_state(self, state: str, *, principal: str, admin: bool) -> _Document:
        entry = await self._host.states.find(state)
        check_owner(entry, principal, admin=admin)
        return self._row(entry)

    async def remove_state(self, state: str, *, principal: str, admin: bool) -> _Document:
        return self._row(await self._host.states.remove(state, principal, admin=admin))

    async def due_states(self, *, before: float, limit: int) -> list[_Document]:
        return [self._row(state) for state in await self._host.states.due(before, limit)]

    async def forget_state(self, state_id: str) -> None:
        await self._host.states.discard(state_id)

    async def adopt_state(self, *, name: str, source: str, principal: str) -> _Document:
        return self._row(await self._host.states.adopt(name, source, principal))

    async def read_record(self, after: int, *, wait_s: float) -> list[_Document]:
        store = self._host.store
        await store.discard_record(after)
        rows: list[dict[str, Any]] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_MAX_WAIT, wait_s)):
                while True:
                    change = asyncio.ensure_future(self._host.wait_for_record())
                    await asyncio.sleep(0)  # subscribe before the check: no record is missed
                    try:
                        if rows := await store.read_record(after, _RECORD_LIMIT):
                            break
                        await change
                    finally:
                        change.cancel()
        return [*rows]

    async def use_grant(
        self,
        agent_id: str,
        generation: int,
        *,
        scope: str,
        operation: str,
        value: str,
        method: str,
        path: str,
    ) -> None:
        known_scope = cast(Scope, scope)  # metering denies unknown ones
        request = metering.Request(known_scope, operation, value, method=method, path=path)
        await metering.consume(self._host, agent_id, generation, request)

    async def report_denial(
        self, agent_id: str, *, layer: str, rule: str, count: int, detail: str
    ) -> None:
        if count < 1:
            raise invalid("/count", "must be at least 1")
        self._host.denials.on_denied(agent_id, layer, rule, count=count, detail=detail)

    async def read_denials(self, after: int, *, wait_s: float) -> DenialCounts:
        ledger = self._host.denials
        await _wait(wait_s, lambda: ledger.revision == after, ledger.wait_for_change)
        return ledger.totals()

    async def read_canaries(self, after: int, *, wait_s: float) -> CanaryReport:
        runner = self._canaries
        await _wait(
            wait_s,
            lambda: runner.report.at is None or runner.report.revision == after,
            runner.wait_for_report,
        )
        return runner.report

    def _row(self, state: StoredState) -> _Document:
        return {
            **asdict(state),
            "agents": sorted(self._host.states.running_agents(state.state_id)),
        }


async def _wait(
    seconds: float, is_same: Callable[[], bool], change: Callable[[], Awaitable[object]]
) -> None:
    """Until it is not the same, at most that long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(_MAX_WAIT, seconds)):
            while is_same():
                await change()
