"""One call, from its turn in the queue to the last byte of its answer."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpcore

from agentbox.core.http.sse_relay import Events, told
from agentbox.gateway.llm.config import Provider
from agentbox.gateway.llm.crowd import Place
from agentbox.gateway.llm.echo import Echo
from agentbox.gateway.llm.gauges import Gauges
from agentbox.gateway.llm.ledger import Ledger
from agentbox.gateway.llm.meter import Meter
from agentbox.gateway.llm.queue import FairQueue
from agentbox.gateway.llm.types import Answer, Call, Kind
from agentbox.gateway.llm.upstream import Upstream, header
from agentbox.policy.rights.standing import Standing

LARGEST: Final = 32 << 20  # bytes of an answer that is no stream
STALLED_SECONDS: Final = 30.0  # in which an agent must have taken something of its answer: its slot is wanted by others
_PASSED: Final = (b"content-type", b"retry-after", b"retry-after-ms", b"request-id", b"x-request-id", b"x-should-retry")
_EVENTS: Final = b"text/event-stream"


class Cut(Exception):
    """An answer that had begun cannot be finished: the connection to the agent is to be closed in the middle."""


@dataclass(slots=True)
class Line:
    """A provider with all that its calls share."""

    provider: Provider
    kind: Kind
    upstream: Upstream
    queue: FairQueue


@dataclass(slots=True)
class Asked:
    """A request that may pass. `model` "" = a list of them; `body` None = it has none; `given`: estimated tokens; `allowed`: whether a model may be shown."""

    who: Standing
    call: Call
    model: str
    method: str
    target: str
    body: dict[str, Any] | None
    headers: list[tuple[bytes, bytes]]
    given: int
    wanted: int | None
    answers: int
    streams: bool
    allowed: Callable[[str], bool]


class Exchange:
    """Runs once. `started`: the head of the answer is on its way to the agent."""

    def __init__(self, line: Line, ledger: Ledger, gauges: Gauges, asked: Asked, key: str, send: Any) -> None:
        self._line, self._ledger, self._gauges, self._asked, self._send = line, ledger, gauges, asked, send
        self._echo, self._heads = Echo(key), Echo(key)
        self._key = key
        self._meter = Meter(asked.given, 0)
        self.started = False
        self.status = 0

    async def run(self) -> None:
        """Raises Answer for what the gateway answers itself, Cut where the answer broke in the middle."""
        asked, name = self._asked, self._line.provider.name
        place = Place.of(asked.who)
        self._ledger.check(asked.who, asked.given, asked.answers)
        worst = asked.given + asked.answers * min(asked.wanted or 4096, 65536)
        self._gauges.waited_ms[name] += round(1000 * await self._line.queue.enter(place, worst))
        try:
            await self._reserved()
        finally:
            self._line.queue.leave(place)

    async def _reserved(self) -> None:
        asked, name = self._asked, self._line.provider.name
        held = await self._ledger.reserve(asked.who, asked.given, asked.wanted, asked.answers)
        self._meter.reserved = held.tokens
        try:
            hide = self._finish(held.output)
            await self._answered(hide)
        except asyncio.CancelledError:
            self._meter.cut = True
            raise
        finally:
            given, made = self._meter.used
            self._ledger.settle(held, given + made)
            for what, count in (("input", given), ("output", made)):
                self._gauges.tokens[name, asked.who.agent, what] += count
            if not self._meter.told:
                self._gauges.estimated[name] += 1
            if echoes := self._echo.found + self._heads.found:
                self._gauges.echoes[name] += echoes

    def _finish(self, output: int) -> bool:
        """The body with its cap. True = the event that tells the usage is not for the agent."""
        asked, kind = self._asked, self._line.kind
        if asked.body is None or not asked.call.generates:
            return False
        cap = output // asked.answers
        if asked.wanted is None or cap < asked.wanted:
            kind.cap(asked.call, asked.body, cap)
        return asked.streams and kind.ask_usage(asked.call, asked.body)

    async def _answered(self, hide: bool) -> None:
        asked = self._asked
        body = b"" if asked.body is None else _written(asked.body)
        headers = [(b"host", self._line.upstream.host()), *asked.headers, *self._line.kind.auth(self._key)]
        if asked.body is not None:
            headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        deadline = asyncio.get_running_loop().time() + self._line.provider.timeout_seconds
        self._meter.sent = True
        response = await self._line.upstream.send(asked.method, asked.target, headers, body, deadline)
        try:
            await self._pass_on(response, hide)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            if self.started:
                raise Cut from error
            raise Answer("provider", "the provider broke off in the middle of its answer") from error
        finally:
            await response.aclose()

    async def _pass_on(self, response: httpcore.Response, hide: bool) -> None:
        self.status = response.status
        if response.status in (401, 403):  # what it says may hold a part of the key
            words = f"the provider {self._line.provider.name} refused the key of this box (HTTP {response.status})"
            raise Answer("provider", words)
        if not 200 <= response.status < 300 and response.status < 400:
            raise Answer("provider", f"the provider answered HTTP {response.status}, which no call of this kind has")
        if header(response, b"content-encoding") not in (b"", b"identity"):
            raise Answer("provider", "the provider compressed its answer, although it was asked not to")
        self._meter.accepted = response.status < 300
        if self._asked.streams and header(response, b"content-type").split(b";")[0].strip() == _EVENTS:
            await self._stream(response, hide)
        else:
            await self._whole(response)

    async def _whole(self, response: httpcore.Response) -> None:
        pieces: list[bytes] = []
        async for piece in response.aiter_stream():
            self._meter.bytes += len(piece)
            if self._meter.bytes > LARGEST:
                raise Answer("provider", f"the provider's answer is longer than {LARGEST} bytes")
            pieces.append(piece)
        body = b"".join(pieces)
        if self._meter.accepted:
            body = self._read(body)
        body = self._echo.clean(body)
        await self._head(response, len(body))
        await self._give({"type": "http.response.body", "body": body})

    def _read(self, body: bytes) -> bytes:
        """Takes the usage out of an answer, and models that the agent may not know of."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(document, dict):
            return body
        if found := self._line.kind.usage(document):
            found.final = True
            self._meter.usage.add(found)
        if self._asked.call.lists:
            self._line.kind.model_ids(document, self._asked.allowed)
            return json.dumps(document).encode()
        return body

    async def _stream(self, response: httpcore.Response, hide: bool) -> None:
        await self._head(response, None)
        events = Events()
        async for piece in response.aiter_stream():
            self._meter.bytes += len(piece)
            kept = [event for event in events.feed(piece) if self._keep(event, hide)]
            if kept and (clean := self._echo.feed(b"".join(kept))):
                await self._give({"type": "http.response.body", "body": clean, "more_body": True})
        rest = events.end()
        last = self._echo.feed(rest if self._keep(rest, hide) else b"") + self._echo.end()
        await self._give({"type": "http.response.body", "body": last})

    def _keep(self, event: bytes, hide: bool) -> bool:
        document = told(event)
        if document is None:
            return True
        self._meter.usage.add(self._line.kind.usage(document))
        return not (hide and self._line.kind.hidden(document))

    async def _head(self, response: httpcore.Response, length: int | None) -> None:
        passed = [(key.lower(), self._heads.clean(value)) for key, value in response.headers if key.lower() in _PASSED]
        if length is not None:
            passed.append((b"content-length", str(length).encode()))
        self.started = True
        await self._give({"type": "http.response.start", "status": response.status, "headers": passed})

    async def _give(self, message: dict[str, Any]) -> None:
        """To the agent. Raises Cut for one that takes nothing."""
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                await self._send(message)
        except TimeoutError as error:
            self._meter.cut = True
            raise Cut from error


def _written(body: dict[str, Any]) -> bytes:
    """As short as it gets; half of a surrogate pair, which UTF-8 does not have, stays an escape."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()
