"""What the stopped box knows better than its snapshot: what was spent since, and its secrets."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from agentbox.api.known_stores import STORES
from agentbox.core.paths import Paths
from agentbox.core.storage.migrations import migrate
from agentbox.restoring.no_return import ACCESS
from agentbox.restoring.stores import opened

BUDGETS: Final = "gateway/budgets.db"
_COPY: Final = "present-budgets.db"
# Of a name in both, the later window counts; of one window the larger sums.
_ACCOUNTS: Final = """
    INSERT INTO accounts (name, since, tokens, calls, cost)
    SELECT name, since, tokens, calls, cost FROM present.accounts WHERE true
    ON CONFLICT (name) DO UPDATE SET
        tokens = max(excluded.tokens, iif(excluded.since > since, 0, tokens)),
        calls = max(excluded.calls, iif(excluded.since > since, 0, calls)),
        cost = max(excluded.cost, iif(excluded.since > since, 0, cost)),
        since = excluded.since
    WHERE excluded.since >= since
"""
_CALLS: Final = "INSERT OR REPLACE INTO model_calls SELECT * FROM present.model_calls"


def take_budgets(paths: Paths, present: Path) -> int:
    """Takes over what was spent by `present`, the state folder of a stopped box: the larger of now
    and then. Returns the number of accounts. Raises apsw.Error, AdapterError, OSError.
    """
    source = present / BUDGETS
    if not source.is_file():
        return 0
    copy = paths.slot("gateway") / _COPY
    with opened(paths, BUDGETS) as connection:
        migrate(connection, BUDGETS, STORES[BUDGETS].migrations)
        try:
            for suffix in ("", "-wal"):  # a killed box leaves its last writes there
                file = source.with_name(source.name + suffix)
                if file.is_file():
                    shutil.copyfile(file, copy.with_name(copy.name + suffix))
            with closing(apsw.Connection(str(copy))) as present_connection:
                migrate(present_connection, _COPY, STORES[BUDGETS].migrations)
            connection.execute("ATTACH ? AS present", (str(copy),))
            with connection:
                connection.execute(_ACCOUNTS)
                connection.execute(_CALLS)
            rows = connection.execute("SELECT count(*) FROM present.accounts").fetchall()
            connection.execute("DETACH present")
        finally:
            for suffix in ("", "-wal", "-shm"):
                copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    return int(str(rows[0][0]))


def take_secrets(paths: Paths, present: Path) -> list[str]:
    """Copies the admin token, keys and passwords of the present box, which are in no snapshot
    unless named; never its named tokens. Returns their names.
    """
    taken = []
    for source in sorted((present / paths.state_secrets.name).glob("*")):
        if source.is_symlink() or not source.is_file():
            continue
        if source.name.startswith(Path(ACCESS).name):
            continue
        paths.state_secrets.mkdir(mode=0o700, exist_ok=True)
        target = paths.state_secrets / source.name
        target.unlink(missing_ok=True)
        shutil.copy2(source, target)
        taken.append(source.name)
    return taken
