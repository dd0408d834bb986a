"""A restore ends sessions of people and disables tokens; users stay."""

import asyncio
from pathlib import Path

import apsw

from agentbox.api.auth.access_store import AccessStore
from agentbox.core.paths import Paths
from agentbox.restoring.no_return import disable_tokens, end_sessions


def test_no_session_comes_back(tmp_path: Path) -> None:
    """Also with tokens that are kept; without a store there is nothing to end."""
    paths = Paths(tmp_path)
    end_sessions(paths)
    paths.state_secrets.mkdir(parents=True)
    asyncio.run(_made(paths))
    end_sessions(paths)
    assert disable_tokens(paths) == 1
    with apsw.Connection(str(paths.state_secrets / "access.db")) as db:
        rows = [db.execute(f"SELECT count(*) FROM {table}").get for table in _TABLES]
    assert rows == [0, 1, 1]


_TABLES = ("sessions", "users", "tokens")


async def _made(paths: Paths) -> None:
    store = AccessStore(paths)
    db = await store.ensure_open()
    for table, values in (
        ("sessions", "'1', x'01', x'02', 'ann', '', 't', 't', 't'"),
        ("users", "'ann', 'viewer', '', 't', NULL"),
        ("tokens", "'1', x'01', 'a', 'b', '', 't', NULL, '', '', '', 0, '', 0, 'ann'"),
    ):
        await db.write(lambda db, sql=f"INSERT INTO {table} VALUES ({values})": db.execute(sql))
    await store.close()
