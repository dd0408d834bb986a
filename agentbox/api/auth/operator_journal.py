"""What people do at the API, in the journal and in metrics: sign-ins, acts, refusals."""

import time
from collections.abc import Callable
from typing import Any, Final

from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.api.auth.authentication import Caller
from agentbox.api.metrics.operator_metrics import OperatorMetrics

MAX_REFUSALS: Final = 60  # events a minute; later ones are counted in the next event


class OperatorJournal:
    """A person is who has a session, or a token of a user. The first admin token and tokens of
    nobody are programs': what they do is in the events of what they change.
    """

    def __init__(
        self,
        journal: BestEffortJournal,
        metrics: OperatorMetrics,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal, self._logins, self._now = journal, metrics.logins, now
        self._window, self._refusals, self._left_out = now(), 0, 0

    async def action(self, caller: Caller, route: str, resource: str, outcome: str) -> None:
        """Records a write of a person; of other callers nothing."""
        if is_person(caller):
            data = {**_who(caller), "route": route, "resource": resource, "outcome": outcome}
            await self._journal.record("operator.action", data)

    async def signin(self, caller: Caller, method: str, address: str) -> None:
        """Records a session that was made from a token or a code."""
        self._logins.labels("ok").inc()
        data = {**_who(caller), "method": method, "address": address, "outcome": "ok"}
        await self._journal.record("operator.signin", data)

    async def signout(self, caller: Caller, session: str) -> None:
        """Records the end of a session by its holder or by another person."""
        data = {**_who(caller), "session": session, "by": caller.principal, "outcome": "ok"}
        await self._journal.record("operator.signout", data)

    def login_failed(self, outcome: str, address: str, name: str) -> None:
        """Counts a failed sign-in, and records it."""
        self._logins.labels(outcome).inc()
        self._refused(
            {"principal": "", "route": "sign_in", "address": address, "name": name}, outcome
        )

    def refused(self, caller: Caller, route: str, outcome: str) -> None:
        """Records what a person may not do, and requests with a cookie that nobody may make."""
        if is_person(caller) or outcome == "cross-site":
            self._refused({**_who(caller), "route": route}, outcome)

    def _refused(self, data: dict[str, Any], outcome: str) -> None:
        now = self._now()
        if now - self._window >= 60:
            self._window, self._refusals = now, 0
        if self._refusals >= MAX_REFUSALS:
            self._left_out += 1
            return
        self._refusals += 1
        left_out, self._left_out = self._left_out, 0
        self._journal.record_soon(
            "operator.refused", {**data, "outcome": outcome, "left_out": left_out}
        )


def is_person(caller: Caller) -> bool:
    """Whether a person makes the call, as far as its credential says."""
    return bool(caller.user or caller.login_id)


def _who(caller: Caller) -> dict[str, Any]:
    return {"principal": caller.principal, "role": caller.role, "session": caller.login_id}
