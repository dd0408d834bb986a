"""What a client is told of its box, and what it holds of its session."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agentbox.contracts.mesh import Registered


@dataclass(frozen=True, kw_only=True)
class BoxFacts:
    """What the box says of itself, besides its identity."""

    boot_id: str
    registration: Callable[[], dict[str, Any]]  # members of a Registration
    heartbeat: Callable[[], Awaitable[dict[str, Any]]]  # members of a Beat
    outbox: Callable[[], dict[str, Any]]  # what waits for the store of beads


@dataclass
class ClientSession:
    """The session, as long as there is one."""

    registered: Registered
    rev: str
    last_ok: float
    heartbeats: int = 0
    misses: int = 0
