"""Inputs from the box, and the state of a session."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agentbox.contracts.mesh import Registered
from agentbox.core.frozen import frozen
from agentbox.mesh.client.backoff import heartbeat_delay


@frozen
class BoxFacts:
    """Data about the box, besides its identity."""

    boot_id: str
    registration: Callable[[], dict[str, Any]]  # members of a Registration
    heartbeat: Callable[[], Awaitable[dict[str, Any]]]  # members of a Heartbeat
    outbox: Callable[[], dict[str, Any]]  # summary of the outbox


@dataclass
class ClientSession:
    """The current session."""

    registered: Registered
    rev: str
    last_ok: float
    heartbeats: int = 0
    misses: int = 0

    def heartbeat_delay(self, scale: float) -> float:
        """Seconds to the next heartbeat: short after the first failures, then the normal period."""
        return heartbeat_delay(self.registered.heartbeat_s, self.misses) / scale

    def lease_end(self, scale: float) -> float:
        """In seconds of the boot clock."""
        return self.last_ok + self.registered.lease_s / scale
