"""One moment of a SQLite store, copied while others write: a connection that holds a read
transaction.
"""

from pathlib import Path
from typing import Any

import apsw

from agentbox.core.storage.sqlite_busy import BusyHandler

PAGES_A_STEP = 1000
_NOFOLLOW = 0x01000000  # SQLITE_OPEN_NOFOLLOW, which apsw names from 3.31 on


class StoreSnapshot:
    """Blocking. `prepare` is apart from `begin`, so that a cut takes no longer than it must. The
    file is opened by no name that is a link: some stores are written by confined programs.
    """

    def __init__(self, path: Path) -> None:
        """Opens the store. Raises apsw.Error for one that cannot be read."""
        self._path = path
        self._connection = apsw.Connection(
            str(path.resolve().parent.joinpath(path.name)),
            flags=apsw.SQLITE_OPEN_READONLY | _NOFOLLOW,
        )
        self._connection.set_busy_handler(BusyHandler())

    def begin(self, seconds: float) -> None:
        """From now on it reads this moment. A read transaction begins with the first read. Raises
        apsw.BusyError if it is locked for longer than `seconds`.
        """
        self._connection.set_busy_handler(BusyHandler(seconds))
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Every row of a query at that moment."""
        return list(self._connection.execute(sql, values))

    def each(self, sql: str) -> "apsw.Cursor":
        """The rows of a query one by one."""
        return self._connection.execute(sql)

    @property
    def migration(self) -> int:
        """The number of its last migration, 0 without any."""
        if not self.rows("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"):
            return 0
        return int(self.rows("SELECT coalesce(max(number), 0) FROM migrations")[0][0])

    @property
    def size(self) -> int:
        """Bytes of the copy."""
        (pages,), (page_size,) = (
            self.rows("PRAGMA page_count")[0],
            self.rows("PRAGMA page_size")[0],
        )
        return int(pages) * int(page_size)

    def copy_to(self, target: Path) -> None:
        """The store as it was at that moment. Commits of others between two steps are not in it,
        and restart nothing: the pages are read in the transaction. Raises apsw.Error.
        """
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy = apsw.Connection(
            str(target), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        )
        try:
            copy.execute("PRAGMA synchronous = OFF")  # a staged copy need not survive a power cut
            with copy.backup("main", self._connection, "main") as backup:
                while not backup.done:
                    backup.step(PAGES_A_STEP)
        finally:
            copy.close()

    def close(self) -> None:
        """Ends the transaction. Idempotent."""
        self._connection.close()
