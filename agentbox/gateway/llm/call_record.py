"""The record of model calls in `budgets.db`: one row a call, written with the budgets that it
changes. The gateway writes it; the API reads it.
"""

from collections.abc import Iterable
from typing import Any, Final

import apsw

from agentbox.core.frozen import frozen_slots
from agentbox.core.storage.sqlite import fetch_all
from agentbox.policy.cost import TokenCounts

FILE_NAME: Final = "budgets.db"
BATCH: Final = 5_000  # rows that one transaction deletes

TABLE: Final = """
    ALTER TABLE accounts ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE model_calls (
        call_id TEXT PRIMARY KEY, at REAL NOT NULL, agent TEXT NOT NULL, agent_id TEXT NOT NULL,
        generation INTEGER NOT NULL, session_id TEXT NOT NULL, task TEXT NOT NULL,
        provider TEXT NOT NULL, model TEXT NOT NULL, input INTEGER NOT NULL,
        output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
        currency TEXT NOT NULL, cost INTEGER, pattern TEXT NOT NULL, price TEXT NOT NULL,
        estimated INTEGER NOT NULL, accounts TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX model_calls_at ON model_calls (at);
    CREATE INDEX model_calls_task ON model_calls (task) WHERE task <> '';
    CREATE INDEX model_calls_agent ON model_calls (agent_id);
    """
_INSERT: Final = (
    "INSERT OR REPLACE INTO model_calls VALUES"
    " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@frozen_slots
class ModelCall:
    """One call. `at`: its start, in Unix seconds. `agent`: name in [agents], else the agent's id.
    `task`: the task it ran for, "" without one. `cost` in micro-units of `currency`; None without a
    price. `price`: digest of the price, `pattern` that of the manifest, both "" without one.
    `estimated`: the provider reported no count, or has not yet: then it is the worst case.
    `accounts`: the budgets that were charged, separated by spaces.
    """

    call_id: str
    at: float
    agent: str
    agent_id: str
    generation: int
    session_id: str
    task: str
    provider: str
    model: str
    tokens: TokenCounts
    currency: str
    cost: int | None
    pattern: str
    price: str
    estimated: bool
    accounts: str

    @property
    def manifest_name(self) -> str:
        """Its name in [agents], "" for a program without one."""
        return "" if self.agent == self.agent_id else self.agent

    @property
    def is_empty(self) -> bool:
        """Whether it used nothing, so that no row is kept."""
        return self.tokens.total == 0 and not self.cost

    def values(self) -> tuple[Any, ...]:
        """The row."""
        return (
            self.call_id,
            self.at,
            self.agent,
            self.agent_id,
            self.generation,
            self.session_id,
            self.task,
            self.provider,
            self.model,
            self.tokens.input,
            self.tokens.output,
            self.tokens.cache_read,
            self.tokens.cache_write,
            self.currency,
            self.cost,
            self.pattern,
            self.price,
            int(self.estimated),
            self.accounts,
        )


def write_calls(db: apsw.Connection, calls: Iterable[ModelCall]) -> None:
    """Inserts, replaces, or, if it used nothing, deletes each call."""
    for call in calls:
        if call.is_empty:
            db.execute("DELETE FROM model_calls WHERE call_id = ?", (call.call_id,))
        else:
            db.execute(_INSERT, call.values())


def delete_before(db: apsw.Connection, at: float) -> int:
    """Deletes a batch of calls that started before that time; returns their number."""
    db.execute(
        "DELETE FROM model_calls WHERE call_id IN"
        " (SELECT call_id FROM model_calls WHERE at < ? LIMIT ?)",
        (at, BATCH),
    )
    return db.changes()


def cost_totals(db: apsw.Connection) -> list[tuple[str, str, str, int]]:
    """`(provider, pattern, name in [agents], micro-units)` of all calls with a price; the name is
    "" for programs without one."""
    rows = fetch_all(
        db,
        "SELECT provider, pattern, iif(agent = agent_id, '', agent) AS name, SUM(cost)"
        " FROM model_calls WHERE cost IS NOT NULL GROUP BY provider, pattern, name",
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]
