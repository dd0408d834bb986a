"""One call of a tool of a server."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from agentbox.core.canonical import canonical_json, digest


class CallIdentity(NamedTuple):
    """What the answer to a question repeats. `arguments` is their digest."""

    agent_id: str
    server: str
    tool: str
    arguments: str


@dataclass(frozen=True)
class ServerCall:
    """Ids are "" where there are none."""

    server: str
    tool: str
    arguments: Mapping[str, Any]
    agent_id: str
    session_id: str = ""
    trace_id: str = ""

    @cached_property
    def identity(self) -> CallIdentity:
        """With the digest of the arguments."""
        arguments = digest(canonical_json(self.arguments))
        return CallIdentity(self.agent_id, self.server, self.tool, arguments)
