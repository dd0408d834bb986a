"""The cost of a call: the provider's count if available, else an estimate."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from agentbox.gateway.llm.vendor_protocol import Usage
from agentbox.policy.cost import TokenCounts

_BYTES_PER_TEXT_TOKEN: Final = 3  # minimum bytes of text per token: English has 4 to 5, code 3 to 4
_BYTES_PER_DATA_TOKEN: Final = 32  # minimum bytes of base64 data (image, document) per token
_MEDIA_TOKENS: Final = 8192  # at most, of one image: above what the vendors document
_FRAME_TOKENS: Final = 64  # tokens that a provider adds around a conversation
_TOOL_TOKENS: Final = 512  # tokens of the provider's tool instructions
_MEDIA_TYPES: Final = ("media_type", "mimeType", "mime_type", "format")
_MEDIA_MEMBERS: Final = ("url", "image_url", "file_data")
_TOOL_MEMBERS: Final = ("input", "args", "response", "parameters", "input_schema")
_BASE64: Final = re.compile(r"(?:data:[^,]{1,100},)?[A-Za-z0-9+/_-]{2048,}={0,2}")


def estimate(body: Any, length: int) -> int:
    """Estimated tokens of a request of `length` bytes."""
    data = sum(len(text) for text in _texts(body) if len(text) > 2048 and _BASE64.fullmatch(text))
    frame = _FRAME_TOKENS + (_TOOL_TOKENS if isinstance(body, dict) and body.get("tools") else 0)
    return (
        frame
        + -(-max(length - data, 0) // _BYTES_PER_TEXT_TOKEN)
        + -(-data // _BYTES_PER_DATA_TOKEN)
    )


def maximum(body: Any, length: int, urls: int) -> int:
    """The largest number of input tokens of a request whose JSON has `length` bytes: text has at
    least one byte per token. Images and documents in base64, and `urls` that the provider fetches,
    have no such bound: each counts as a large image. Text that looks like base64 is text."""
    data = [len(text) for text in _media(body) if len(text) > 2048 and _BASE64.fullmatch(text)]
    media = sum(min(size, max(_MEDIA_TOKENS, -(-size // _BYTES_PER_DATA_TOKEN))) for size in data)
    tools = _TOOL_TOKENS if isinstance(body, dict) and body.get("tools") else 0
    text = max(length - sum(data), 0)
    return _FRAME_TOKENS + tools + text + media + urls * _MEDIA_TOKENS


def _media(body: Any) -> list[str]:
    """The texts in which vendors expect media: data beside its type, data URLs, and files. What a
    tool was called with, or returned as an object, is text."""
    texts, stack = [], [body]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            is_typed = any(name in node for name in _MEDIA_TYPES)
            for name, value in node.items():
                if isinstance(value, str):
                    if (name == "data" and is_typed) or name in _MEDIA_MEMBERS:
                        texts.append(value)
                elif not (name in _TOOL_MEMBERS and isinstance(value, dict)):
                    stack.append(value)
    return texts


def _texts(body: Any) -> list[str]:
    texts, stack = [], [body]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            texts.append(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return texts


@dataclass(slots=True)
class Meter:
    """Measures one call. `aborted`: ended by the agent, its operator or the timeout, not by the
    provider."""

    input_tokens: int  # estimate
    reserved: int
    usage: Usage = field(default_factory=Usage)
    accepted: bool = False  # the provider began a billable response
    bytes: int = 0  # of the response
    aborted: bool = False
    sent: bool = False  # the request may have been sent

    @property
    def is_exact(self) -> bool:
        """Whether the count is the provider's."""
        return self.usage.final or not (self.sent if self.aborted else self.accepted)

    @property
    def settlement(self) -> "tuple[TokenCounts, bool]":
        """The tokens, and whether the input was counted by the provider."""
        input_tokens, output = self.used
        usage = self.usage
        counts = TokenCounts(
            input=input_tokens,
            output=output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
        )
        return counts, usage.input is not None and not (self.aborted and not usage.final)

    @property
    def used(self) -> tuple[int, int]:
        """Tokens of input and output. An aborted call is charged at its worst case, since its
        actual output is unknown."""
        if self.usage.final:
            return (
                self.usage.input if self.usage.input is not None else self.input_tokens,
                self.usage.output or 0,
            )
        if self.aborted and self.sent:
            return self.input_tokens, max(self.reserved - self.input_tokens, 0)
        if not self.accepted:
            return 0, 0
        input_tokens = self.input_tokens if self.usage.input is None else self.usage.input
        received_tokens = min(
            -(-self.bytes // _BYTES_PER_TEXT_TOKEN), max(self.reserved - self.input_tokens, 0)
        )
        return input_tokens, max(received_tokens, self.usage.output or 0)
