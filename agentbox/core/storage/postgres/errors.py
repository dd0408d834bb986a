"""Maps PostgreSQL errors to typed errors that name the slot, but never a value, a user, a host or a
connection string.
"""

from typing import TYPE_CHECKING

from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AdapterError, BackendError, SlotUnavailable

if TYPE_CHECKING:
    import psycopg

# Fragments of libpq and server messages for a failed connection, and our text for each.
_CONNECT_REASONS = (
    ("password authentication failed", "it refused the password"),
    ("no password supplied", "it requires a password"),
    ("no pg_hba.conf entry", "its pg_hba.conf denies this role"),
    ("certificate verify failed", "its certificate is not trusted"),
    ("does not match host name", "its certificate has another name"),
    ("root certificate file", "the file of trusted certificates cannot be read"),
    ("does not support SSL", "it does not support TLS"),
    ("does not exist", "the database or the role does not exist"),
    ("too many clients", "it has no connection left"),
    ("remaining connection slots", "it has no connection left"),
    ("starting up", "it is starting up"),
    ("shutting down", "it is shutting down"),
    ("refused", "nothing listens there"),
    ("timeout", "it did not answer in time"),
    ("resolve", "its name is unknown"),
)
# SQLSTATE (PostgreSQL 17, appendix A), by class or in full.
_SQLSTATE_REASONS = {
    "57014": "it took too long",
    "53100": "its disk is full",
    "53": "it lacks a resource",
    "25006": "it is read-only",
    "42501": "this role lacks a privilege",
    "55P03": "a lock could not be acquired",
    "40": "every attempt conflicted with other writers",
    "57P": "it is shutting down",
    "08": "the connection was lost",
}
RETRYABLE_STATES = (
    "40001",
    "40P01",
)  # serialization_failure, deadlock_detected: the transaction had no effect


def connection_error(slot: str, impl: str, error: BaseException) -> SlotUnavailable:
    """No connection could be made, or none became free in time."""
    text = str(error)
    reason = next(
        (sentence for phrase, sentence in _CONNECT_REASONS if phrase in text),
        "no connection could be made",
    )
    return SlotUnavailable(f"cannot reach PostgreSQL: {reason}", slot=slot, impl=impl, since=None)


def to_adapter_error(slot: str, impl: str, error: "psycopg.Error") -> AdapterError:
    """A statement failed."""
    from psycopg import DataError

    state = error.sqlstate or ""
    if not state and isinstance(error, DataError):
        return invalid_value("", "contains a NUL character")
    if not state:
        return SlotUnavailable(
            "cannot use PostgreSQL: the connection was lost", slot=slot, impl=impl, since=None
        )
    reason = next(
        (
            _SQLSTATE_REASONS[state[:length]]
            for length in (5, 3, 2)
            if state[:length] in _SQLSTATE_REASONS
        ),
        type(error).__name__,
    )
    return BackendError(f"cannot use PostgreSQL: {reason}", slot=slot, impl=impl)
