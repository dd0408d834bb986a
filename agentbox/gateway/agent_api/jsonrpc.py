"""Handles JSON-RPC 2.0 messages, single or batch (https://www.jsonrpc.org/specification)."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from agentbox.core.records.json_input import read_json
from agentbox.gateway.agent_api.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    AgentApiError,
)

MAX_BATCH: Final = 100  # calls per batch
_ID_TYPES: Final = (str, int, float, type(None))
log = structlog.get_logger()
MethodCall = Callable[[str, Any], Awaitable[Any]]
"""Maps method and params to a result. Raises AgentApiError."""


async def handle(data: bytes | str, call: MethodCall) -> bytes | None:
    """Returns None if nothing needs a response (notifications). A batch is processed in order."""
    try:
        message = read_json(data)
    except ValueError as error:
        return encode_error(AgentApiError(PARSE_ERROR, f"the message is not valid JSON: {error}"))
    if not isinstance(message, list):
        return await _handle_message(message, call)
    if not 1 <= len(message) <= MAX_BATCH:
        return encode_error(
            AgentApiError(INVALID_REQUEST, f"a batch must have 1 to {MAX_BATCH} calls")
        )
    responses = [
        response for item in message if (response := await _handle_message(item, call)) is not None
    ]
    return b"[" + b",".join(responses) + b"]" if responses else None


async def _handle_message(message: Any, call: MethodCall) -> bytes | None:
    if (
        not isinstance(message, dict)
        or message.get("jsonrpc") != "2.0"
        or not isinstance(message.get("method"), str)
    ):
        return encode_error(
            AgentApiError(INVALID_REQUEST, "the message is not a JSON-RPC 2.0 request")
        )
    request_id = message.get("id")
    if (
        not isinstance(request_id, _ID_TYPES)
        or isinstance(request_id, bool)
        or request_id in (math.inf, -math.inf)
    ):
        return encode_error(AgentApiError(INVALID_REQUEST, "id must be a string, a number or null"))
    try:
        outcome = {"result": await call(message["method"], message.get("params"))}
    except AgentApiError as error:
        outcome = {"error": error.to_wire()}
    except asyncio.CancelledError:
        raise
    except Exception:  # a bug: logged with its traceback, without details for the agent
        log.exception("a call failed", method=message["method"][:64])
        outcome = {
            "error": AgentApiError(
                INTERNAL_ERROR, "internal error; see the log of the box"
            ).to_wire()
        }
    return encode_response(outcome, request_id) if "id" in message else None


def encode_error(error: AgentApiError) -> bytes:
    """Encodes the response to a message without an id."""
    return encode_response({"error": error.to_wire()}, None)


def encode_response(outcome: dict[str, Any], request_id: Any) -> bytes:
    """Encodes one response."""
    return json.dumps(
        {"jsonrpc": "2.0", "id": request_id, **outcome}, separators=(",", ":")
    ).encode()
