"""A model provider over real HTTP that plays a script, in the formats of OpenAI, Anthropic and
Gemini, with faults.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Self

import uvicorn

from support.model_formats import FORMATS
from support.model_turns import ModelTurn

MODELS: Final = ("small-1", "small-2", "large-1")


@dataclass(frozen=True, kw_only=True)
class ServerFault:
    """A fault of one request: a status, a stream cut after `after` events, `seconds` before the
    first byte, the key sent back, or no usage.
    """

    kind: Literal["status", "cut", "slow", "echo", "silent"]
    status: int = 500
    retry_after: str = ""
    after: int = 2
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The credential of the request."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "") or self.headers.get("x-goog-api-key", "")


def play_script(script: Sequence[ModelTurn]) -> Callable[[int, Mapping[str, Any]], ModelTurn]:
    """Play the script by the number of model turns in the conversation; its last line is
    repeated.
    """
    return lambda spoken, _body: script[min(spoken, len(script) - 1)]


@dataclass
class ModelServer:
    """A context manager. `reply` returns the turn for the number of model turns and the request's
    body.
    """

    reply: Callable[[int, Mapping[str, Any]], ModelTurn] = field(
        default_factory=lambda: play_script([ModelTurn(text="Hello there.")])
    )
    key: str = ""  # "" = any
    host: str = "127.0.0.1"
    port: int = 0  # 0 = a free one
    pause: float = 0.0  # seconds between the events of a stream
    faults: deque[ServerFault] = field(default_factory=deque)
    requests: list[RecordedRequest] = field(default_factory=list)
    running: int = 0
    max_concurrent: int = 0  # concurrent requests
    disconnects: int = 0  # clients that disconnected early

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self._port}"

    def __enter__(self) -> Self:
        config = uvicorn.Config(
            self,
            host=self.host,
            port=self.port,
            log_level="critical",
            lifespan="off",
            access_log=False,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.002)
        self._port = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        request = RecordedRequest(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode(),
            headers=headers,
            body=json.loads(raw) if raw else {},
        )
        self.requests.append(request)
        self.running += 1
        self.max_concurrent = max(self.max_concurrent, self.running)
        try:
            await self._respond(request, _Response(send, receive, self))
        finally:
            self.running -= 1

    async def _respond(self, request: RecordedRequest, response: "_Response") -> None:
        fault = self.faults.popleft() if self.faults else None
        if fault and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        if fault and fault.kind == "status":
            await response.json(
                {"error": {"message": "a fault"}}, fault.status, {"retry-after": fault.retry_after}
            )
            return
        if self.key and request.key != self.key:
            await response.json(
                {"error": {"message": f"Incorrect API key provided: {request.key}"}}, 401
            )
            return
        if request.method == "GET":
            await response.json(_models(request.path))
            return
        api_format = next((form for form in FORMATS if form.matches(request.path)), None)
        if api_format is None:
            await response.json({"error": {"message": f"no such path: {request.path}"}}, 404)
            return
        turn = self.reply(api_format.count_turns(request.body), request.body)
        if fault and fault.kind == "echo":
            turn = ModelTurn(
                text=f"your key is {request.key} indeed", tokens=turn.tokens, chunk_size=1000
            )
        omit_usage = bool(fault and fault.kind == "silent")
        if not api_format.is_stream(request.path, request.body):
            headers = (
                {"x-request-id": f"for {request.key}"} if fault and fault.kind == "echo" else {}
            )
            await response.json(
                api_format.build_body(request.path, request.body, turn, omit_usage), 200, headers
            )
            return
        after = fault.after if fault and fault.kind == "cut" else None
        await response.events(
            api_format.build_events(request.body, turn, omit_usage), self.pause, after
        )


class _Response:
    """The response to one request."""

    def __init__(self, send: Any, receive: Any, server: ModelServer) -> None:
        self._send, self._receive, self._server = send, receive, server

    async def json(
        self, document: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        body = json.dumps(document).encode()
        all_headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **(headers or {}),
        }
        await self._head(status, all_headers)
        await self._send({"type": "http.response.body", "body": body})

    async def events(self, events: Sequence[bytes], pause: float, after: int | None) -> None:
        await self._head(200, {"content-type": "text/event-stream; charset=utf-8"})
        disconnected = asyncio.ensure_future(self._receive())
        for number, event in enumerate(events):
            if after is not None and number >= after:
                raise ConnectionError("the stream is cut on request")
            if pause:
                await asyncio.wait({disconnected}, timeout=pause)
            if disconnected.done():
                self._server.disconnects += 1
                return
            await self._send({"type": "http.response.body", "body": event, "more_body": True})
        disconnected.cancel()
        await self._send({"type": "http.response.body", "body": b""})

    async def _head(self, status: int, headers: Mapping[str, str]) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items() if value]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})


def _models(path: str) -> dict[str, Any]:
    if "v1beta" in path:
        return {"models": [{"name": f"models/{name}"} for name in MODELS]}
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]}
