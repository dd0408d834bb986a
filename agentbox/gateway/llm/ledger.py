"""Model budgets: the worst case is reserved before a call, settled after it, and persisted.

An account belongs to a name in `[agents]`, not to a process: new generations, reconnects and
gateway restarts continue with it. Usage also counts for the accounts of all ancestors. A
reservation is written before the call starts, so calls of a killed gateway stay charged at their
worst case. Writes are not synced: a power failure may lose the latest ones, which no agent can
cause.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw
import structlog

from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite import Database, fetch_all
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.rights.authorization import Authorization, Budget
from agentbox.policy.rights.budget_usage import BudgetUsage, budget_line

DEFAULT_OUTPUT: Final = (
    16_384  # tokens of a response without a requested cap: all current models accept it
)
MIN_OUTPUT: Final = 16  # the smallest cap that all vendors accept
IN_FLIGHT_RETRY_SECONDS: Final = 2.0  # retry-after while calls in flight hold the remaining budget
ACCOUNT_RETENTION_SECONDS: Final = (
    2 * 2_678_400
)  # seconds before an unused account is deleted: two of the longest windows

log = structlog.get_logger()

MIGRATIONS: Final = (
    """
    CREATE TABLE accounts (
        name TEXT PRIMARY KEY, since REAL NOT NULL, tokens INTEGER NOT NULL, calls INTEGER NOT NULL
    ) STRICT;
    """,
)


@dataclass(slots=True)
class BudgetAccount:
    """`tokens` and `calls` of the window that began at `since` (Unix seconds), including
    reservations."""

    name: str
    since: float
    tokens: int = 0
    calls: int = 0
    reserved: int = 0  # part of the tokens: worst cases of calls in flight
    budget: Budget | None = None  # of the latest call

    def roll(self, now: float, window: int) -> None:
        """Starts a new window if the current one has expired; calls in flight count in the new
        one."""
        if now >= self.since + window:
            self.since, self.tokens, self.calls = now, self.reserved, 0


@dataclass(slots=True)
class Reservation:
    """The worst case of one call. `output`: maximum output tokens of all its choices together."""

    accounts: tuple[BudgetAccount, ...]
    tokens: int
    output: int
    open: bool = field(default=True)


class BudgetLedger:
    """Used by one event loop, from `open` to `close`."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._database = Database(
            directory / "budgets.db", MIGRATIONS, "gateway", "budgets", _disable_sync
        )
        self._clock = clock
        self._writes: set[asyncio.Task[None]] = set()
        self.accounts: dict[str, BudgetAccount] = {}

    async def open(self) -> None:
        """Raises BackendError or IntegrityError if the accounts cannot be read; then no model is
        reachable."""
        await self._database.open()
        oldest = self._clock() - ACCOUNT_RETENTION_SECONDS
        await self._database.write(
            lambda db: db.execute("DELETE FROM accounts WHERE since < ?", (oldest,))
        )
        stored = await self._database.read(
            lambda db: fetch_all(db, "SELECT name, since, tokens, calls FROM accounts")
        )
        self.accounts = {row[0]: BudgetAccount(*row) for row in stored}

    async def close(self) -> None:
        """Returns when all changes are written."""
        await asyncio.gather(*self._writes)
        await self._database.close()

    def check(self, caller: Authorization, input_tokens: int, choices: int) -> None:
        """Raises ModelGatewayError if a reservation would fail now; for a call about to be
        queued."""
        self._remaining(self._chain(caller), input_tokens, choices)

    async def reserve(
        self, caller: Authorization, input_tokens: int, max_output: int | None, choices: int
    ) -> Reservation:
        """`input_tokens`: estimate; `max_output`: requested cap per choice; `choices`: 0 = no
        output.

        Raises ModelGatewayError (429) over budget, and (503) if the reservation cannot be written.
        """
        chain = self._chain(caller)
        remaining = self._remaining(chain, input_tokens, choices)
        output = 0
        if choices:
            output = choices * min(
                max_output or DEFAULT_OUTPUT, (remaining - input_tokens) // choices
            )
        reservation = Reservation(
            tuple(account for account, _ in chain), input_tokens + output, output
        )
        for account in reservation.accounts:
            account.tokens += reservation.tokens
            account.reserved += reservation.tokens
            account.calls += 1
        try:
            await self._save(reservation.accounts)
        except AdapterError as error:
            self._release(reservation, 0)
            raise ModelGatewayError(
                "unavailable", "the call was not made: cannot save the budget"
            ) from error
        except asyncio.CancelledError:
            self.finalise(reservation, 0)
            raise
        return reservation

    def finalise(self, reservation: Reservation, used: int) -> None:
        """Charges the actual usage, once, even if it exceeds the reservation."""
        if reservation.open:
            self._release(reservation, used)
            task = asyncio.create_task(self._save_usage(reservation.accounts))
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)

    async def _save_usage(self, accounts: tuple[BudgetAccount, ...]) -> None:
        try:
            await self._save(accounts)
        except (
            AdapterError
        ) as error:  # the worst case stays on disk, and the next reservation fails
            log.warning("cannot save a budget", error=error.message)

    def _release(self, reservation: Reservation, used: int) -> None:
        reservation.open = False
        for account in reservation.accounts:
            account.tokens += used - reservation.tokens
            account.reserved -= reservation.tokens

    def _remaining(
        self, chain: Iterable[tuple[BudgetAccount, Budget]], input_tokens: int, choices: int
    ) -> int:
        """Tokens remaining in the whole chain. Raises ModelGatewayError."""
        remaining = 1 << 62
        now = self._clock()
        needed = input_tokens + choices * MIN_OUTPUT
        for account, budget in chain:
            account.roll(now, budget.window_seconds)
            reset = max(account.since + budget.window_seconds - now, 1.0)
            if account.calls >= budget.max_calls:
                raise _budget_exceeded(
                    account, "calls", f"all {budget.max_calls} calls of this window are used", reset
                )
            available = budget.max_tokens - account.tokens
            if available < needed:
                used = account.tokens - account.reserved
                if budget.max_tokens - used >= needed:
                    raise _budget_exceeded(
                        account,
                        "tokens",
                        "the remaining tokens are reserved by calls in flight",
                        IN_FLIGHT_RETRY_SECONDS,
                    )
                message = (
                    f"{max(budget.max_tokens - used, 0)} of {budget.max_tokens} tokens remain,"
                    f" this call needs {needed}"
                )
                raise _budget_exceeded(account, "tokens", message, reset)
            remaining = min(remaining, available)
        return remaining

    def usage(self, name: str) -> BudgetUsage | None:
        """The usage of a name; None without an account. Its window may have expired."""
        account = self.accounts.get(name)
        return (
            None
            if account is None
            else BudgetUsage(
                since=account.since,
                tokens=account.tokens,
                calls=account.calls,
                reserved=account.reserved,
            )
        )

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

    async def _save(self, accounts: tuple[BudgetAccount, ...]) -> None:
        values = [
            (account.name, account.since, account.tokens, account.calls) for account in accounts
        ]

        def job(db: apsw.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?)", values)

        await self._database.write(job)


def _disable_sync(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


def _budget_exceeded(
    account: BudgetAccount, resource: str, message: str, reset: float
) -> ModelGatewayError:
    return ModelGatewayError(
        "budget",
        f"over the model budget of {account.name}: {message}; try again in {reset:.0f} s",
        rule=f"budget:{resource}",
        detail=account.name,
        retry_after=reset,
    )
