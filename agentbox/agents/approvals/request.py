"""One action that waits or waited for a decision."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self, get_args

from agentbox.core import clock
from agentbox.core.visible_text import escape_invisible

ApprovalState = Literal["waiting", "approved", "denied", "used"]
KINDS: Final = ("tool", "host", "spawn")
MAX_PARAMETERS: Final = 16 << 10  # characters of the parameters as JSON; longer ones are denied


@dataclass(kw_only=True)
class ApprovalRequest:
    """Mutable: it is decided once. Times in Unix seconds. `parameters` are those of the action,
    `words` the agent's comment, `family` the root agent it descends from. `by`: who decided, "" for
    the box itself."""

    id: str
    agent_id: str
    name: str
    kind: str
    value: str
    parameters: Mapping[str, Any]
    words: str = ""
    asked: float
    expires: float
    state: ApprovalState = "waiting"
    decided: float = 0.0
    by: str = ""
    reason: str = ""
    family: str = ""
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        self.digest = digest_of(self.agent_id, self.kind, self.value, self.parameters)

    @property
    def action(self) -> tuple[str, str, Mapping[str, Any]]:
        """The action, without the requester."""
        return self.kind, self.value, self.parameters

    def to_row(self) -> dict[str, Any]:
        """Plain data for agents.db."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The inverse of `to_row`. Raises TypeError or ValueError for other data."""
        request = cls(**{name: value for name, value in row.items() if name != "digest"})
        texts = (
            request.id,
            request.agent_id,
            request.name,
            request.kind,
            request.value,
            request.words,
            request.by,
            request.reason,
            request.family,
        )
        if request.state not in get_args(ApprovalState) or not all(
            isinstance(text, str) for text in texts
        ):
            raise ValueError("cannot read an approval: a value has the wrong type")
        request.asked, request.expires, request.decided = (
            float(request.asked),
            float(request.expires),
            float(request.decided),
        )
        return request

    def describe(self) -> dict[str, Any]:
        """As callers see it: text of the agent is escaped, its comment is quoted."""
        return {
            "id": self.id,
            "agent_id": self.agent_id,
            "name": escape_invisible(self.name),
            "kind": self.kind,
            "value": escape_invisible(self.value),
            "parameters": escape_invisible(format_parameters(self.parameters)),
            "digest": self.digest,
            "words": f"\u201c{escape_invisible(self.words)}\u201d" if self.words else "",
            "state": self.state,
            "by": self.by,
            "reason": escape_invisible(self.reason),
            "asked_at": clock.to_wire(clock.from_unix(self.asked)),
            "expires_at": clock.to_wire(clock.from_unix(self.expires)),
            "decided_at": clock.to_wire(clock.from_unix(self.decided)) if self.decided else None,
        }


def digest_of(agent_id: str, kind: str, value: str, parameters: Mapping[str, Any]) -> str:
    """SHA-256 of agent, action and parameters."""
    return hashlib.sha256(
        json.dumps([agent_id, kind, value, parameters], sort_keys=True).encode("ascii")
    ).hexdigest()


def format_parameters(parameters: Mapping[str, Any]) -> str:
    """The parameters as readable JSON."""
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False)
