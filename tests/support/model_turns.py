"""A turn of a model, and what the formats of all vendors share."""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

CHUNK_SIZE: Final = 12  # characters of a text in one event


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """A tool call of the model. `is_text` = its input is a text (OpenAI's custom tools), in
    `arguments["input"]`.
    """

    name: str
    arguments: Mapping[str, Any]
    is_text: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelTurn:
    """A turn. `tokens` = its output tokens, limited by the request; None = a quarter of the text's
    length.
    """

    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    tokens: int | None = None
    chunk_size: int = CHUNK_SIZE  # characters of the text in one event

    @property
    def chunks(self) -> list[str]:
        """The text in the chunks of a stream."""
        return split_text(self.text, self.chunk_size)

    def token_counts(self, body: Mapping[str, Any]) -> tuple[int, int]:
        """Return the tokens of input and output."""
        length = len(self.text) + sum(len(json.dumps(use.arguments)) for use in self.tool_uses)
        generated = self.tokens if self.tokens is not None else max(1, length // 4)
        config = body.get("generationConfig", {})
        caps = [
            body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")
        ]
        return len(json.dumps(body)) // 4, min(
            [generated, *(n for n in (*caps, config.get("maxOutputTokens")) if n)]
        )


@dataclass(frozen=True, kw_only=True)
class ApiFormat:
    """An API. The last argument of `build_body` and `build_events`: omit usage."""

    matches: Callable[[str], bool]
    is_stream: Callable[[str, Mapping[str, Any]], bool]
    count_turns: Callable[[Mapping[str, Any]], int]
    build_body: Callable[[str, Mapping[str, Any], ModelTurn, bool], dict[str, Any]]
    build_events: Callable[[Mapping[str, Any], ModelTurn, bool], Sequence[bytes]]


def make_id(kind: str, body: Mapping[str, Any], number: int = 0) -> str:
    """Return an id that is equal for equal requests and else different: clients identify responses
    and calls by it.
    """
    return f"{kind}_{zlib.crc32(json.dumps(body).encode()):08x}{number}"


def server_event(document: Mapping[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document)}\n\n".encode()


def split_text(text: str, length: int = CHUNK_SIZE) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]
