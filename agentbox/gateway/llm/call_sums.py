"""Sums over the record of model calls, for programs beside the gateway."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import apsw

from agentbox.contracts.usage import ModelUsage, UsageGroup, UsageReport, UsageRow
from agentbox.core import clock
from agentbox.core.storage.sqlite import fetch_all
from agentbox.core.storage.sqlite_busy import BusyHandler
from agentbox.core.storage.sqlite_errors import to_adapter_error
from agentbox.gateway.llm.call_record import FILE_NAME

_SUMS: Final = (
    "COUNT(*), SUM(input), SUM(output), SUM(cache_read), SUM(cache_write), SUM(cost),"
    " currency, SUM(cost IS NULL), SUM(estimated)"
)
_KEYS: Final[dict[UsageGroup, str]] = {
    "agent": "agent",
    "task": "task",
    "session": "coalesce((SELECT session FROM sessions WHERE sessions.id = agent_id), '')",
    "model": "provider || '/' || model",
    "day": "strftime('%Y-%m-%d', at, 'unixepoch')",
}
_LARGEST_FIRST: Final = "SUM(cost) DESC NULLS LAST, SUM(input + output) DESC, key"
_MAX_VARIABLES: Final = 500


class CallSums:
    """Reads `budgets.db` of the gateway. Each call opens it: there is none until the gateway has
    served models for the first time. All methods block; they raise AdapterError."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME

    def report(
        self,
        by: UsageGroup,
        since: datetime | None,
        limit: int,
        sessions: Mapping[str, str] = MappingProxyType({}),
    ) -> UsageReport:
        """Of calls that started at `since` or later. `sessions`: the session of each agent that has
        one, by its id.
        """
        order = "key DESC" if by == "day" else _LARGEST_FIRST
        of_agents = [value for pair in sessions.items() for value in pair]
        rows_of_agents = ", ".join(["(?, ?)"] * len(sessions)) or "('', '')"
        grouped = (
            f"WITH sessions(id, session) AS (VALUES {rows_of_agents})"
            f" SELECT {_SUMS}, {_KEYS[by]} AS key FROM model_calls WHERE at >= ?"
            f" GROUP BY key, currency ORDER BY {order} LIMIT ?"
        )
        total = f"SELECT {_SUMS} FROM model_calls WHERE at >= ? GROUP BY currency ORDER BY currency"
        start = 0.0 if since is None else since.timestamp()
        rows, sums = self._read((grouped, (*of_agents, start, limit + 1)), (total, (start,)))
        items = [UsageRow(**_usage(row), key=row[9]) for row in rows[:limit]]
        if by == "day":
            items.reverse()
        return UsageReport(
            by=by,
            since=None if since is None else clock.to_wire(since),
            items=tuple(items),
            complete=len(rows) <= limit,
            total=tuple(ModelUsage(**_usage(row)) for row in sums),
        )

    def by_task(self, ids: Sequence[str]) -> dict[str, ModelUsage]:
        """The usage of tasks; of several currencies the one with the most calls."""
        return self._by("task", ids)

    def by_agent_id(self, ids: Sequence[str]) -> dict[str, ModelUsage]:
        """The usage of agents, all their runs together."""
        return self._by("agent_id", ids)

    def _by(self, column: str, ids: Sequence[str]) -> dict[str, ModelUsage]:
        result: dict[str, ModelUsage] = {}
        for start in range(0, len(ids), _MAX_VARIABLES):
            batch = tuple(ids[start : start + _MAX_VARIABLES])
            marks = ", ".join("?" * len(batch))
            sql = (
                f"SELECT {_SUMS}, {column} FROM model_calls WHERE {column} IN ({marks})"
                f" AND {column} <> '' GROUP BY {column}, currency ORDER BY COUNT(*)"
            )
            (rows,) = self._read((sql, batch))
            result |= {row[9]: ModelUsage(**_usage(row)) for row in rows}
        return result

    def _read(self, *queries: tuple[str, tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
        """The rows of each query, in one snapshot; none without a record."""
        if not self._path.exists():
            return [[] for _ in queries]
        try:
            db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                db.set_busy_handler(BusyHandler())
                db.execute("BEGIN")
                if not fetch_all(db, "SELECT 1 FROM sqlite_schema WHERE name = 'model_calls'"):
                    return [[] for _ in queries]
                return [fetch_all(db, sql, values) for sql, values in queries]
            finally:
                db.close()
        except apsw.Error as error:
            raise to_adapter_error(error, self._path.name, "gateway", "budgets") from error


def _usage(row: Sequence[Any]) -> dict[str, Any]:
    return {
        "calls": row[0],
        "input_tokens": row[1],
        "output_tokens": row[2],
        "cache_read_tokens": row[3],
        "cache_write_tokens": row[4],
        "cost_micros": row[5],
        "currency": row[6],
        "unpriced": row[7],
        "estimated": row[8],
    }
