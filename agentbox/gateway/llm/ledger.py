"""Model budgets: the worst case is reserved before a call, settled after it, and persisted.

An account belongs to a name in `[agents]`, not to a process: new generations, reconnects and
gateway restarts continue with it. Usage also counts for the accounts of all ancestors. A
reservation is written before the call starts, so calls of a killed gateway stay charged at their
worst case. Each call has a row, written in one transaction with the accounts that it changes, so
the sum of the rows is always what the accounts say. Writes are not synced: a power failure may lose
the latest ones, which no agent can cause.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import apsw
import structlog

from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite import Database, fetch_all
from agentbox.gateway.llm import call_record
from agentbox.gateway.llm.budget_limits import BudgetAccount, Remaining, remaining
from agentbox.gateway.llm.call_record import ModelCall
from agentbox.gateway.llm.reservation import CallSubject, Reservation, Settlement, new_call
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.cost import TokenCounts
from agentbox.policy.rights.authorization import Authorization, Budget
from agentbox.policy.rights.budget_usage import BudgetUsage, budget_line

DEFAULT_OUTPUT: Final = (
    16_384  # tokens of a response without a requested cap: all current models accept it
)
ACCOUNT_RETENTION_SECONDS: Final = (
    2 * 2_678_400
)  # seconds before an unused account is deleted: two of the longest windows
_DAY_SECONDS: Final = 86_400

log = structlog.get_logger()

MIGRATIONS: Final = (
    """
    CREATE TABLE accounts (
        name TEXT PRIMARY KEY, since REAL NOT NULL, tokens INTEGER NOT NULL, calls INTEGER NOT NULL
    ) STRICT;
    """,
    call_record.TABLE,
)


class BudgetLedger:
    """Used by one event loop, from `open` to `close`. `refuse_unknown`: whether agents with a
    budget in money may call models without a price (`cost.unknown`)."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._database = Database(
            directory / call_record.FILE_NAME, MIGRATIONS, "gateway", "budgets", _disable_sync
        )
        self._clock = clock
        self._writes: set[asyncio.Task[None]] = set()
        self._unsaved: dict[str, tuple[ModelCall, tuple[BudgetAccount, ...]]] = {}
        self.accounts: dict[str, BudgetAccount] = {}
        self.refuse_unknown = True

    async def open(self) -> None:
        """Raises BackendError or IntegrityError if the accounts cannot be read; then no model is
        reachable."""
        await self._database.open()
        oldest = self._clock() - ACCOUNT_RETENTION_SECONDS
        await self._database.write(
            lambda db: db.execute("DELETE FROM accounts WHERE since < ?", (oldest,))
        )
        stored = await self._database.read(
            lambda db: fetch_all(db, "SELECT name, since, tokens, calls, cost FROM accounts")
        )
        self.accounts = {row[0]: BudgetAccount(*row) for row in stored}

    async def close(self) -> None:
        """Returns when all changes are written."""
        await asyncio.gather(*self._writes)
        await self._database.close()

    async def cost_totals(self) -> list[tuple[str, str, str, int]]:
        """`(provider, pattern, agent, micro-units)` of all calls of the record."""
        return await self._database.read(call_record.cost_totals)

    async def prune(self, keep_days: int) -> None:
        """Deletes the calls that are older. Raises AdapterError."""
        before = self._clock() - keep_days * _DAY_SECONDS
        while await self._database.write(lambda db: call_record.delete_before(db, before)):
            pass

    def check(
        self,
        caller: Authorization,
        input_tokens: int,
        choices: int,
        subject: CallSubject | None = None,
    ) -> None:
        """Raises ModelGatewayError if a reservation would fail now; for a call about to be
        queued."""
        self._remaining(self._chain(caller), input_tokens, choices, subject or CallSubject())

    async def reserve(
        self,
        caller: Authorization,
        input_tokens: int,
        max_output: int | None,
        choices: int,
        subject: CallSubject | None = None,
    ) -> Reservation:
        """`input_tokens`: estimate; `max_output`: requested cap per choice; `choices`: 0 = no
        output.

        Raises ModelGatewayError: 429 over budget, 403 without a price, 503 if the reservation
        cannot be written.
        """
        subject = subject or CallSubject()
        chain = self._chain(caller)
        left = self._remaining(chain, input_tokens, choices, subject)
        output = 0
        if choices:
            output = choices * min(
                max_output or DEFAULT_OUTPUT, (left.tokens - input_tokens) // choices
            )
            if left.output is not None:
                output = min(output, choices * (left.output // choices))
        cost = 0
        if subject.price is not None and subject.is_billable:
            cost = subject.price.worst_cost(max(subject.max_input, input_tokens), output)
        tokens = TokenCounts(input=input_tokens, output=output)
        accounts = tuple(account for account, _ in chain)
        reservation = Reservation(
            accounts,
            tokens.total,
            output,
            cost,
            new_call(caller, subject, tokens, cost, accounts, self._clock()),
        )
        for account in accounts:
            account.tokens += reservation.tokens
            account.reserved += reservation.tokens
            account.cost += cost
            account.reserved_cost += cost
            account.calls += 1
        self._unsaved[reservation.call.call_id] = (reservation.call, accounts)
        try:
            await self._save()
        except AdapterError as error:
            self._release(reservation, Settlement())
            raise ModelGatewayError(
                "unavailable", "the call was not made: cannot save the budget"
            ) from error
        except asyncio.CancelledError:
            self.finalise(reservation, Settlement())
            raise
        return reservation

    def finalise(self, reservation: Reservation, used: Settlement) -> None:
        """Charges the actual usage, once, even if it exceeds the reservation."""
        if reservation.open:
            self._release(reservation, used)
            task = asyncio.create_task(self._save_usage())
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)

    async def _save_usage(self) -> None:
        try:
            await self._save()
        except (
            AdapterError
        ) as error:  # the worst case stays on disk, and the next reservation fails
            log.warning("cannot save a budget", error=error.message)

    def _release(self, reservation: Reservation, used: Settlement) -> None:
        reservation.open = False
        for account in reservation.accounts:
            account.tokens += used.tokens.total - reservation.tokens
            account.reserved -= reservation.tokens
            account.cost += (used.cost or 0) - reservation.cost
            account.reserved_cost -= reservation.cost
        call = replace(
            reservation.call, tokens=used.tokens, cost=used.cost, estimated=used.estimated
        )
        self._unsaved[call.call_id] = (call, reservation.accounts)

    def _remaining(
        self,
        chain: Iterable[tuple[BudgetAccount, Budget]],
        input_tokens: int,
        choices: int,
        subject: CallSubject,
    ) -> Remaining:
        """What remains in the whole chain. Raises ModelGatewayError."""
        price = subject.price if subject.is_billable else None
        rows = list(chain)
        if (
            subject.is_billable
            and price is None
            and self.refuse_unknown
            and any(budget.max_cost is not None for _, budget in rows)
        ):
            raise ModelGatewayError(
                "forbidden",
                f"no price of {subject.provider} matches {subject.model},"
                " and this agent has a budget in money",
                rule="price-unknown",
                detail=subject.model,
            )
        max_input = max(subject.max_input, input_tokens)
        return remaining(rows, self._clock(), input_tokens, choices, price, max_input)

    def usage(self, name: str) -> BudgetUsage | None:
        """The usage of a name; None without an account. Its window may have expired."""
        account = self.accounts.get(name)
        return None if account is None else account.usage()

    def _chain(self, caller: Authorization) -> list[tuple[BudgetAccount, Budget]]:
        """The agent's own account, then those of its ancestors, each once. Raises ModelGatewayError
        without a budget."""
        if caller.budget is None:
            raise ModelGatewayError(
                "forbidden", "this agent has no model budget", rule="llm:budget"
            )
        return [
            (self._account(name, budget), budget) for name, budget in budget_line(caller).items()
        ]

    def _account(self, name: str, budget: Budget) -> BudgetAccount:
        account = self.accounts.setdefault(name, BudgetAccount(name, self._clock()))
        account.budget = budget
        return account

    async def _save(self) -> None:
        """Writes the changed calls and their accounts in one transaction. What fails is written
        with the next change."""
        unsaved = dict(self._unsaved)
        accounts = {account.name: account for _, charged in unsaved.values() for account in charged}
        values = [
            (account.name, account.since, account.tokens, account.calls, account.cost)
            for account in accounts.values()
        ]

        def job(db: apsw.Connection) -> None:
            call_record.write_calls(db, (call for call, _ in unsaved.values()))
            db.executemany("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?)", values)

        await self._database.write(job)
        for call_id, entry in unsaved.items():
            if self._unsaved.get(call_id) is entry:
                del self._unsaved[call_id]


def _disable_sync(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
