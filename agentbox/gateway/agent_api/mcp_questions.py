"""Questions of MCP servers to clients of the revisions with a handshake: requests on the stream of
the call, answered by messages of their own.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from starlette.responses import Response

from agentbox.gateway.agent_api.app import respond
from agentbox.gateway.agent_api.call_stream import CallStream

_SECONDS: Final = 610.0  # longer than a question waits in mcp-host
_CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}

Ask = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Questions by name -> answers by the same."""


def is_answer(message: Any) -> bool:
    """Whether a message answers a request."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and isinstance(message.get("id"), str)
        and ("result" in message or "error" in message)
    )


class OpenQuestions:
    """What clients have been asked, by agent: no other can answer."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], asyncio.Future[dict[str, Any]]] = {}

    def take(self, agent_id: str, message: Mapping[str, Any]) -> bool:
        """Whether a question of that agent waited for this answer. An error cancels it."""
        answer = self._open.pop((agent_id, message["id"]), None)
        if answer is None or answer.done():
            return False
        result = message.get("result")
        answer.set_result(result if isinstance(result, dict) else dict(_CANCEL))
        return True

    async def ask(
        self, agent_id: str, requests: Mapping[str, Any], send: Callable[[bytes], None]
    ) -> dict[str, Any]:
        """The answers, once there are all; those that do not come are cancelled."""
        answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        keys: list[tuple[str, str]] = []
        try:
            for name, request in requests.items():
                key = (agent_id, secrets.token_urlsafe(16))
                keys.append(key)
                answers[name] = self._open[key] = asyncio.get_running_loop().create_future()
                send(json.dumps({"jsonrpc": "2.0", "id": key[1], **request}).encode())
            await asyncio.wait(answers.values(), timeout=_SECONDS)
            return {
                name: answer.result() if answer.done() else dict(_CANCEL)
                for name, answer in answers.items()
            }
        finally:
            for key in keys:
                self._open.pop(key, None)

    async def respond(
        self, agent_id: str, call: Callable[[Ask], Coroutine[Any, Any, bytes | None]]
    ) -> Response:
        """The JSON response of a call that asks nothing, otherwise a stream. A client that
        disconnects cancels the call."""
        events: asyncio.Queue[bytes] = asyncio.Queue()
        running = asyncio.create_task(
            call(lambda requests: self.ask(agent_id, requests, events.put_nowait))
        )
        first = asyncio.create_task(events.get())
        try:
            await asyncio.wait({running, first}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            running.cancel()
            raise
        finally:
            if not first.done():
                first.cancel()
        if not first.done() or first.cancelled():
            return respond(running.result(), 200)
        return CallStream(running, _stream(running, first.result(), events))


async def _stream(
    running: "asyncio.Task[bytes | None]", first: bytes, events: "asyncio.Queue[bytes]"
) -> AsyncIterator[bytes]:
    yield _event(first)
    while not running.done():
        following = asyncio.create_task(events.get())
        try:
            await asyncio.wait({running, following}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                yield _event(following.result())
        finally:
            following.cancel()
    yield _event(running.result() or b"")


def _event(data: bytes) -> bytes:
    return b"event: message\ndata: " + data + b"\n\n"
