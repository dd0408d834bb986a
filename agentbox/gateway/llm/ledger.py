"""What of each agent's model budget is used: reserved at its worst before a call, settled after it, kept on disk.

An account belongs to a name of `[agents]`, not to a process: a new generation, a new agent of that name, a reconnect or a
restart of the gateway finds the account as it was. What an agent uses is used of every ancestor's account too. A reservation
is written before the call begins, so that a gateway that is killed leaves calls charged at their worst, never free. It is not
synced: what the kernel had not yet written when a machine lost its power is forgotten, which no agent brings about.
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
from agentbox.core.storage.sqlite import Database, rows
from agentbox.gateway.llm.types import Answer
from agentbox.policy.rights.spent import Spent, line_of
from agentbox.policy.rights.standing import Budget, Standing

DEFAULT_OUTPUT: Final = 16_384  # tokens of one answer where the request sets no cap: no current model refuses it
LEAST_OUTPUT: Final = 16  # the smallest cap that every kind takes
HELD_SECONDS: Final = 2.0  # after which it is worth to try again while calls in flight hold what is left
FORGOTTEN: Final = (
    2 * 2_678_400
)  # seconds after which an account that nobody used is dropped: two of the longest windows

log = structlog.get_logger()

MIGRATIONS: Final = (
    """
    CREATE TABLE accounts (
        name TEXT PRIMARY KEY, since REAL NOT NULL, tokens INTEGER NOT NULL, calls INTEGER NOT NULL
    ) STRICT;
    """,
)


@dataclass(slots=True)
class Account:
    """`tokens` and `calls` are those of the window that began at `since` (Unix seconds), reservations included."""

    name: str
    since: float
    tokens: int = 0
    calls: int = 0
    reserved: int = 0  # of the tokens: worst cases of calls in flight
    budget: Budget | None = None  # as the last call had it

    def roll(self, now: float, window: int) -> None:
        """A new window, if it is time: what is in flight is settled in it."""
        if now >= self.since + window:
            self.since, self.tokens, self.calls = now, self.reserved, 0


@dataclass(slots=True)
class Reservation:
    """The worst case of one call. `output`: tokens that all its answers together may have at most."""

    accounts: tuple[Account, ...]
    tokens: int
    output: int
    open: bool = field(default=True)


class Ledger:
    """Used by one event loop, from `open` to `close`."""

    def __init__(self, folder: Path, seconds: Callable[[], float] = time.time) -> None:
        self._database = Database(folder / "budgets.db", MIGRATIONS, "gateway", "budgets", _unsynced)
        self._seconds = seconds
        self._writes: set[asyncio.Task[None]] = set()
        self.accounts: dict[str, Account] = {}

    async def open(self) -> None:
        """Raises BackendError or IntegrityError when the accounts cannot be read: then no model is reached."""
        await self._database.open()
        oldest = self._seconds() - FORGOTTEN
        await self._database.write(lambda db: db.execute("DELETE FROM accounts WHERE since < ?", (oldest,)))
        kept = await self._database.read(lambda db: rows(db, "SELECT name, since, tokens, calls FROM accounts"))
        self.accounts = {row[0]: Account(*row) for row in kept}

    async def close(self) -> None:
        """Returns when all is on disk."""
        await asyncio.gather(*self._writes)
        await self._database.close()

    def check(self, who: Standing, given: int, answers: int) -> None:
        """Raises Answer where a reservation would be refused now. For a call that is about to wait."""
        self._room(self._chain(who), given, answers)

    async def reserve(self, who: Standing, given: int, wanted: int | None, answers: int) -> Reservation:
        """`given`: estimated tokens of the input; `wanted`: cap of one answer as asked for; `answers`: 0 = no output.

        Raises Answer (429) over budget, and (503) when the reservation cannot be written.
        """
        chain = self._chain(who)
        left = self._room(chain, given, answers)
        output = 0
        if answers:
            output = answers * min(wanted or DEFAULT_OUTPUT, (left - given) // answers)
        made = Reservation(tuple(account for account, _ in chain), given + output, output)
        for account in made.accounts:
            account.tokens += made.tokens
            account.reserved += made.tokens
            account.calls += 1
        try:
            await self._save(made.accounts)
        except AdapterError as error:
            self._release(made, 0)
            raise Answer("unavailable", "the budget cannot be written down, so the call is not made") from error
        except asyncio.CancelledError:
            self.settle(made, 0)
            raise
        return made

    def settle(self, reservation: Reservation, used: int) -> None:
        """What the call took in the end; once. More than was reserved is charged all the same."""
        if reservation.open:
            self._release(reservation, used)
            task = asyncio.create_task(self._settled(reservation.accounts))
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)

    async def _settled(self, accounts: tuple[Account, ...]) -> None:
        try:
            await self._save(accounts)
        except AdapterError as error:  # the disk has the worst case then, and the next reservation is refused
            log.warning("a budget was not written down", error=error.message)

    def _release(self, reservation: Reservation, used: int) -> None:
        reservation.open = False
        for account in reservation.accounts:
            account.tokens += used - reservation.tokens
            account.reserved -= reservation.tokens

    def _room(self, chain: Iterable[tuple[Account, Budget]], given: int, answers: int) -> int:
        """Tokens that are left in the whole chain. Raises Answer."""
        left = 1 << 62
        now = self._seconds()
        need = given + answers * LEAST_OUTPUT
        for account, budget in chain:
            account.roll(now, budget.window_seconds)
            reset = max(account.since + budget.window_seconds - now, 1.0)
            if account.calls >= budget.max_calls:
                raise _over(account, "calls", f"all {budget.max_calls} calls of this window are made", reset)
            here = budget.max_tokens - account.tokens
            if here < need:
                spent = account.tokens - account.reserved
                if budget.max_tokens - spent >= need:
                    raise _over(account, "tokens", "what is left is held by calls in flight", HELD_SECONDS)
                words = f"{max(budget.max_tokens - spent, 0)} of {budget.max_tokens} tokens are left, this call needs {need}"
                raise _over(account, "tokens", words, reset)
            left = min(left, here)
        return left

    def spent(self, name: str) -> Spent | None:
        """Of that name; None while it has no account. Its window may be over (`Spent.at`)."""
        one = self.accounts.get(name)
        return None if one is None else Spent(since=one.since, tokens=one.tokens, calls=one.calls, reserved=one.reserved)  # fmt: skip

    def _chain(self, who: Standing) -> list[tuple[Account, Budget]]:
        """The agent's own account, then those of its ancestors, each once. Raises Answer for one that has no budget."""
        if who.budget is None:
            raise Answer("forbidden", "this agent has no model budget", rule="llm:budget")
        return [(self._account(name, budget), budget) for name, budget in line_of(who).items()]

    def _account(self, name: str, budget: Budget) -> Account:
        account = self.accounts.setdefault(name, Account(name, self._seconds()))
        account.budget = budget
        return account

    async def _save(self, accounts: tuple[Account, ...]) -> None:
        values = [(one.name, one.since, one.tokens, one.calls) for one in accounts]

        def job(db: apsw.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?)", values)

        await self._database.write(job)


def _unsynced(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


def _over(account: Account, what: str, words: str, reset: float) -> Answer:
    return Answer(
        "budget", f"over the model budget of {account.name}: {words}; try again in {reset:.0f} s",
        rule=f"budget:{what}", detail=account.name, wait=reset,
    )  # fmt: skip
