"""What a call cost: the provider's word where it gave one, else an estimate."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from agentbox.gateway.llm.types import Usage

_TEXT: Final = 3  # bytes of a text that are one token, at least: English has 4 to 5, code 3 to 4
_DATA: Final = 32  # bytes of an image or document in base64 that are one token, at least
_FRAME: Final = 64  # tokens that a provider puts around a conversation
_TOOLS: Final = 512  # tokens of its own instructions where there are tools
_BASE64: Final = re.compile(r"(?:data:[^,]{1,100},)?[A-Za-z0-9+/_-]{2048,}={0,2}")


def estimate(body: Any, length: int) -> int:
    """Tokens of a request of that many bytes."""
    data = sum(len(text) for text in _texts(body) if len(text) > 2048 and _BASE64.fullmatch(text))
    frame = _FRAME + (_TOOLS if isinstance(body, dict) and body.get("tools") else 0)
    return frame + -(-max(length - data, 0) // _TEXT) + -(-data // _DATA)


def _texts(body: Any) -> list[str]:
    found, waiting = [], [body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


@dataclass(slots=True)
class Meter:
    """One call's. `cut`: the agent, its operator or the clock ended it, not the provider."""

    given: int  # estimated tokens of the input
    reserved: int
    usage: Usage = field(default_factory=Usage)
    accepted: bool = False  # the provider began an answer that it bills
    bytes: int = 0  # of that answer
    cut: bool = False
    sent: bool = False  # the request may be on its way

    @property
    def told(self) -> bool:
        """Whether the sum is the provider's own."""
        return self.usage.final or not (self.sent if self.cut else self.accepted)

    @property
    def used(self) -> tuple[int, int]:
        """Tokens of input and output. Who hangs up pays the worst case: what the provider made of it nobody has seen."""
        if self.usage.final:
            return self.usage.input if self.usage.input is not None else self.given, self.usage.output or 0
        if self.cut and self.sent:
            return self.given, max(self.reserved - self.given, 0)
        if not self.accepted:
            return 0, 0
        given = self.given if self.usage.input is None else self.usage.input
        seen = min(-(-self.bytes // _TEXT), max(self.reserved - self.given, 0))
        return given, max(seen, self.usage.output or 0)
