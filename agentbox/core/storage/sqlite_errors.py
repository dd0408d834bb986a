"""Maps SQLite errors to typed errors that name the slot and never a value."""

import apsw

from agentbox.core.slot_errors import AdapterError, BackendError, disk_full_error
from agentbox.core.storage.damaged_rows import damaged_row
from agentbox.core.storage.sqlite_busy import BUSY_MS


def to_adapter_error(
    error: apsw.Error | UnicodeDecodeError, name: str, slot: str, impl: str
) -> AdapterError:
    """The typed error for a database with that file name. A full disk has its own error: stored
    data can be read.
    """
    if (
        isinstance(error, apsw.FullError)
        or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE
    ):
        return disk_full_error(f"write to {name}")
    if isinstance(error, UnicodeDecodeError):
        return damaged_row(name, "a row holds text that is not valid UTF-8")
    reason = {
        apsw.ReadOnlyError: "the file system is read-only",
        apsw.BusyError: f"another process locked it for {BUSY_MS // 1000} s",
        apsw.CorruptError: "the file is damaged",
        apsw.NotADBError: "the file is not a database",
    }.get(type(error), type(error).__name__)
    return BackendError(f"cannot use {name}: {reason}", slot=slot, impl=impl)
