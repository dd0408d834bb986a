"""`agentbox.lock` as data."""

from agentbox.lockfile.errors import LockError
from agentbox.lockfile.inputs import Inputs, Wanted, inputs_digest
from agentbox.lockfile.model import (
    ARCH_OF_SYSTEM,
    LOCK_VERSION,
    SYSTEM_OF_ARCH,
    DebEntry,
    Entry,
    Lock,
    NpmEntry,
    Seed,
    WheelEntry,
)
from agentbox.lockfile.names import store_name
from agentbox.lockfile.reader import read
from agentbox.lockfile.writer import write

__all__ = [
    "ARCH_OF_SYSTEM",
    "LOCK_VERSION",
    "SYSTEM_OF_ARCH",
    "DebEntry",
    "Entry",
    "Inputs",
    "Lock",
    "LockError",
    "NpmEntry",
    "Seed",
    "Wanted",
    "WheelEntry",
    "inputs_digest",
    "read",
    "store_name",
    "write",
]
