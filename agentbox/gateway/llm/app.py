"""The ASGI application below `/llm/<provider>/`."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog

from agentbox.core.records.plain import plain
from agentbox.gateway.authorizer import Authority, Refused
from agentbox.gateway.llm.config import LlmConfig
from agentbox.gateway.llm.crowd import Crowd
from agentbox.gateway.llm.exchange import Asked, Cut, Exchange, Line
from agentbox.gateway.llm.gauges import Gauges
from agentbox.gateway.llm.ledger import Ledger
from agentbox.gateway.llm.queue import FairQueue
from agentbox.gateway.llm.request import SMALL, asked, bearer, mask, read_body, size_of
from agentbox.gateway.llm.rights import may, may_any
from agentbox.gateway.llm.room import Room
from agentbox.gateway.llm.types import STATUS, Answer, Call, Kind
from agentbox.gateway.llm.upstream import Upstream
from agentbox.gateway.llm.vendors.anthropic import ANTHROPIC
from agentbox.gateway.llm.vendors.gemini import GEMINI
from agentbox.gateway.llm.vendors.openai import OPENAI
from agentbox.policy.rights.standing import Standing

log = structlog.get_logger()

PREFIX: Final = "/llm/"
KINDS: Final[Mapping[str, Kind]] = {"openai": OPENAI, "anthropic": ANTHROPIC, "gemini": GEMINI}
_PATH: Final = re.compile(r"/llm/([a-z][a-z0-9-]{0,31})/([A-Za-z0-9._:@/-]{1,300})")
_ODD: Final = re.compile(r"(^|/)\.\.?(/|$)|//")
_SETTLE_SECONDS: Final = 0.05  # between two looks at rights that change
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def llm_app(config: LlmConfig, authority: Authority) -> "LlmApp":
    """The application; `open` it before the first request and `close` it after the last."""
    return LlmApp(config, authority)


class LlmApp:
    """Used by one event loop."""

    def __init__(self, config: LlmConfig, authority: Authority) -> None:
        self.gauges = Gauges()
        self.ledger = Ledger(config.state)
        self.room = Room()
        self._config, self._authority = config, authority
        crowd = Crowd()
        self.lines = {
            name: Line(one, KINDS[one.kind], Upstream(one, self.gauges), FairQueue(one.max_concurrent, crowd))
            for name, one in config.providers.items()
        }

    async def open(self) -> None:
        """Raises AdapterError when the budgets cannot be read."""
        await self.ledger.open()

    async def close(self) -> None:
        """Call it when no request is under way any more."""
        for line in self.lines.values():
            await line.upstream.close()
        await self.ledger.close()

    def state(self) -> dict[str, Any]:
        """Counts since the start, queues, what each name has spent, and the budgets of names that called since the start:
        plain data, which changes only as they do."""
        queues = {name: [line.queue.depth, line.queue.running] for name, line in self.lines.items()}
        accounts = self.ledger.accounts.values()
        budgets = {one.name: plain(one.budget) for one in accounts if one.budget is not None}
        spent = {one.name: plain(self.ledger.spent(one.name)) for one in accounts}
        return {"counts": self.gauges.to_json(), "queues": queues, "budgets": budgets, "spent": spent}

    def reload(self, config: LlmConfig) -> None:
        """Takes over the live keys of providers that there are: models, calls at once, seconds of a call."""
        for name, line in self.lines.items():
            if name in config.providers:
                line.provider = config.providers[name]
                line.queue.slots = line.provider.max_concurrent
                line.queue.serve()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "models are reached by HTTP"})
            return
        visit = _Visit(self, self._config, self._authority, scope, receive, send)
        await visit.run()


class _Visit:
    """One request."""

    def __init__(
        self, app: LlmApp, config: LlmConfig, authority: Authority, scope: Any, receive: Any, send: Any
    ) -> None:
        self._app, self._config, self._authority = app, config, authority
        self._scope, self._receive, self._send = scope, receive, send
        self._headers = {key.lower(): value for key, value in scope["headers"]}
        self._who: Standing | None = None
        self._line: Line | None = None
        self._exchange: Exchange | None = None

    async def run(self) -> None:
        outcome = "ok"
        try:
            await self._serve()
            if self._exchange is not None and self._exchange.status >= 400:
                outcome = "provider"
        except Answer as answer:
            outcome = answer.rule or answer.reason
            await self._say(answer)
        except Refused as refused:
            outcome = "refused"
            await self._say(Answer("forbidden", refused.reason, rule=refused.rule))
        except RecursionError:
            outcome = "invalid"
            await self._say(Answer("invalid", "the body is nested too deep"))
        except Cut:
            outcome = "cut"
            raise  # the server closes a connection whose answer is not whole
        except ConnectionError:
            outcome = "gone"
        finally:
            if self._line is not None and self._who is not None:
                self._app.gauges.calls[self._line.provider.name, self._who.agent, outcome] += 1

    async def _serve(self) -> None:
        line, path = self._find()
        token = bearer(self._headers, self._scope["query_string"])
        try:
            self._who = who = self._authority.identify(token)
        except Refused as refused:
            raise Answer("token", refused.reason) from None
        call = line.kind.find(self._scope["method"], path)
        if call is None:
            what = f"{self._scope['method']} {path}"
            raise Answer("forbidden", f"{what} is not among the calls that pass", rule="llm:path", detail=what[:200])
        with self._app.room.holding(who.agent_id, size_of(self._headers) if call.body else 0):
            request = await self._request(line, who, call)
            key = self._key(line)
            self._exchange = Exchange(line, self._app.ledger, self._app.gauges, request, key, self._send)
            await self._watched(self._exchange, request, token)

    def _find(self) -> tuple[Line, str]:
        raw = self._scope.get("raw_path") or self._scope["path"].encode()
        found = _PATH.fullmatch(raw.decode("latin-1").partition("?")[0])
        line = self._app.lines.get(found[1]) if found else None
        if found is None or line is None:
            raise Answer(
                "missing", "there is no provider at this path: it is /llm/<provider>/ and the provider's own path"
            )
        self._line = line
        if _ODD.search(found[2]):
            raise Answer("forbidden", "this path is not in its normal form")
        return line, found[2]

    async def _request(self, line: Line, who: Standing, call: Call) -> Asked:
        raw = await read_body(self._receive)
        request = await asked(
            self._authority, who, line.provider, line.kind, call, self._scope, self._headers, raw
        )  # fmt: skip
        searching = (self._config.guard, line.provider, self._app.gauges, request)
        if len(raw) > SMALL:
            await asyncio.to_thread(mask, *searching)
        else:
            mask(*searching)
        return request

    def _key(self, line: Line) -> str:
        name = line.provider.env_var
        key = self._config.key(name) if name else ""
        if key is None:
            raise Answer("unavailable", f"the provider {line.provider.name} has no key: the secret {name} is not set")
        return key

    async def _watched(self, exchange: Exchange, request: Asked, token: str) -> None:
        """The exchange, until it ends, the agent hangs up, its right ends, or the time is over."""
        work = asyncio.ensure_future(exchange.run())
        watch = asyncio.ensure_future(self._ended(request, token))
        assert self._line is not None
        try:
            await asyncio.wait(
                {work, watch}, timeout=self._line.provider.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if work.done():
                work.result()
                return
            why = watch.result() if watch.done() else Answer("late", "the call took longer than the provider may take")
            work.cancel()
            await asyncio.wait({work})
            if not work.cancelled() and work.exception() is None:
                return  # it ended as it was cancelled
            if exchange.started and not isinstance(why, ConnectionError):
                raise Cut from why
            raise why
        finally:
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    async def _ended(self, request: Asked, token: str) -> Exception:
        """Why a call must not go on."""
        who = request.who
        gone = asyncio.ensure_future(self._hung_up())
        try:
            while True:
                changed = asyncio.ensure_future(asyncio.shield(self._authority.revoked(who)))
                await asyncio.wait({gone, changed}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    changed.cancel()
                    return ConnectionError()
                try:
                    who = self._authority.identify(token)
                except Refused as refused:
                    return refused
                assert self._line is not None
                one = self._line.provider
                if not (may(who, one, request.model) if request.model else may_any(who, one)):
                    return Refused("llm:call", "the right to this model was taken back")
                await asyncio.sleep(_SETTLE_SECONDS)
        finally:
            gone.cancel()

    async def _hung_up(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _say(self, answer: Answer) -> None:
        if answer.rule and self._who is not None:
            self._authority.denied(self._who, "gateway", answer.rule, answer.detail)
        kind = self._line.kind if self._line is not None else OPENAI
        status = STATUS[answer.reason]
        body = kind.error(status, answer.reason, answer.message, answer.wait)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if answer.wait:
            headers.append((b"retry-after", str(max(1, round(answer.wait))).encode()))
        if answer.reason in ("token", "forbidden", "provider") or answer.wait > _SOON:
            headers.append((b"x-should-retry", b"false"))  # what SDKs of two vendors ask before they try again
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


_SOON: Final = 30.0  # seconds; a longer wait is for a person, not for an SDK
