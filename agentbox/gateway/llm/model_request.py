"""An accepted request, and the provider that gets it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentbox.gateway.llm.config import Provider
from agentbox.gateway.llm.fair_queue import FairQueue
from agentbox.gateway.llm.upstream import Upstream
from agentbox.gateway.llm.vendor_protocol import VendorCall, VendorProtocol
from agentbox.policy.rights.authorization import Authorization


@dataclass(slots=True)
class ProviderRuntime:
    """A provider with the state shared by its calls."""

    provider: Provider
    protocol: VendorProtocol
    upstream: Upstream
    queue: FairQueue


@dataclass(slots=True)
class ModelRequest:
    """An accepted request. `model` "": a list of models; `body` None: no body; `input_tokens`:
    estimate; `max_input`: their bound, for money; `is_model_allowed`: whether a model may be
    listed."""

    caller: Authorization
    call: VendorCall
    model: str
    method: str
    target: str
    body: dict[str, Any] | None
    headers: list[tuple[bytes, bytes]]
    input_tokens: int
    max_output: int | None
    choices: int
    streams: bool
    is_model_allowed: Callable[[str], bool]
    urls: int = 0
    max_input: int = 0


def encode_body(body: dict[str, Any]) -> bytes:
    """Compact JSON. A lone surrogate, which UTF-8 cannot encode, stays escaped."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()
