"""The SQLite stores of a box, and a program that reads, copies and restores them while it is down:
`python -I -m agentbox.api.stores VERB [ARGUMENT]` prints JSON.
"""

import json
import os
import stat
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw

from agentbox.box.supervision.current_boot import lock_state
from agentbox.contracts.generation import StoreState
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths

# What the operator would miss, by the store's path below the state: table and condition. Memory
# entries that expire may go at any time, so they are not missed.
_ROWS: Final = {
    "beads/beads.db": ("beads", ""),
    "pods/index.db": ("objects", ""),
    "memory/memory.db": ("entries", " WHERE expires_at IS NULL"),
    "orchestrator/agents.db": ("agents", ""),
}
# Made of other data when it is missing, so neither copied nor counted.
_DERIVED: Final = frozenset({"events/search.db"})
# Verbs that need the state for themselves; copies are removed while the box runs, too.
_CHANGES: Final = frozenset({"copy", "restore", "hold", "unhold"})


def known_migrations() -> dict[str, int]:
    """The newest migration of each store that this release has."""
    from agentbox.api.known_stores import STORES

    return {name: len(store.migrations) for name, store in STORES.items()}


def read_stores(paths: Paths) -> dict[str, StoreState]:
    """Every store that exists, by its path below the state. Blocks. Raises AgentboxError."""
    states = {}
    for path in sorted(paths.state.glob("*/*.db")):
        name = str(path.relative_to(paths.state))
        if name not in _DERIVED and not name.startswith(("generations/", "branches/")):
            states[name] = _read(path, name)
    return states


def moving(current: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """The stores whose number a start of a release with `known` changes, sorted."""
    return sorted(name for name, number in current.items() if known.get(name, number) != number)


def _read(path: Path, name: str) -> StoreState:
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            connection.set_busy_timeout(2000)
            return StoreState(
                migration=_count(connection, "migrations"),
                rows=rows_of(connection, name),
            )
    except apsw.Error as error:
        raise AgentboxError(f"cannot read the store {name}: {error}") from error


def rows_of(connection: apsw.Connection, name: str) -> int | None:
    """How many rows of a store the operator would miss; None for a store of other things."""
    return _count(connection, *_ROWS[name]) if name in _ROWS else None


def _count(connection: apsw.Connection, table: str, condition: str = "") -> int:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
    if not found:
        return 0
    query = f"SELECT count(*) FROM {table}{condition}"
    [(count,)] = connection.execute(query).fetchall()
    assert isinstance(count, int)
    return count


def _end_with_the_command() -> None:
    """Ends this program when the command that started it is gone, which closes the pipe at stdin.
    Every verb may be repeated.
    """
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main(argv: list[str]) -> int:
    """Verbs: `known`, `numbers`, `copy` and `restore` with a JSON argument, `discard N`, `hold N`,
    `unhold`. Exits 1 with one sentence on stderr, also while the box or another one changes the
    state."""
    from agentbox.api.store_copies import copy, discard, restore

    paths = Paths.for_this_process()
    verb, argument = argv[0], argv[1] if len(argv) > 1 else ""
    _end_with_the_command()
    lock = -1
    try:
        result: Any = None
        if verb in _CHANGES:
            lock = lock_state(paths)
        if verb == "known":
            result = known_migrations()
        elif verb == "numbers":
            result = {name: store.to_wire() for name, store in read_stores(paths).items()}
        elif verb == "copy":
            result = copy(paths, **json.loads(argument))
        elif verb == "restore":
            restore(paths, **json.loads(argument))
        elif verb == "discard":
            discard(paths, int(argument))
        elif verb == "hold":
            from agentbox.api.hold import hold

            hold(paths, int(argument))
        elif verb == "unhold":
            from agentbox.api.hold import unhold

            unhold(paths)
        else:
            raise AgentboxError(f"cannot run {verb!r}: no such verb")
    except (AgentboxError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if lock >= 0:
            os.close(lock)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
