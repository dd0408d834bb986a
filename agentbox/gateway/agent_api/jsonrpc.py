"""JSON-RPC 2.0 messages, one or a batch, to answers (https://www.jsonrpc.org/specification)."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from agentbox.core.records.json_input import read_json
from agentbox.gateway.agent_api.errors import INTERNAL, INVALID, PARSE, DoorError

MOST: Final = 100  # calls of one batch
_ID: Final = (str, int, float, type(None))
log = structlog.get_logger()
Call = Callable[[str, Any], Awaitable[Any]]
"""Method and params to a result. Raises DoorError."""


async def answer(said: bytes | str, call: Call) -> bytes | None:
    """None where nothing is answered: notifications alone. A batch is worked off in order."""
    try:
        message = read_json(said)
    except ValueError as error:
        return wire({"error": DoorError(PARSE, f"this is no JSON: {error}").wire()}, None)
    if not isinstance(message, list):
        return await _one(message, call)
    if not 1 <= len(message) <= MOST:
        return wire({"error": DoorError(INVALID, f"a batch has from 1 to {MOST} calls").wire()}, None)
    answers = [done for one in message if (done := await _one(one, call)) is not None]
    return b"[" + b",".join(answers) + b"]" if answers else None


async def _one(message: Any, call: Call) -> bytes | None:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return wire({"error": DoorError(INVALID, "this is no request of JSON-RPC 2.0").wire()}, None)
    number = message.get("id")
    if not isinstance(number, _ID) or isinstance(number, bool) or number in (math.inf, -math.inf):
        return wire({"error": DoorError(INVALID, "an id is a string, a number or null").wire()}, None)
    try:
        outcome = {"result": await call(message["method"], message.get("params"))}
    except DoorError as error:
        outcome = {"error": error.wire()}
    except asyncio.CancelledError:
        raise
    except Exception:  # a bug of ours: told as such, with a traceback in the log, and no word of it to the agent
        log.exception("a call failed", method=message["method"][:64])
        outcome = {"error": DoorError(INTERNAL, "this call failed by a fault of the box; its log says more").wire()}
    return wire(outcome, number) if "id" in message else None


def wire(outcome: dict[str, Any], number: Any) -> bytes:
    """One answer."""
    return json.dumps({"jsonrpc": "2.0", "id": number, **outcome}, separators=(",", ":")).encode()
