"""The ASGI application of one listener: each request is matched to its route, authorized, handled
and answered.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qsl

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.api.auth.access import ANONYMOUS, Caller, require
from agentbox.api.auth.on_behalf import resolve_on_behalf
from agentbox.api.endpoints.sockets import refuse_socket, serve_socket
from agentbox.api.http.call import Call
from agentbox.api.http.handlers import resolve_handler
from agentbox.api.http.reply import JSON, AnyReply, EventStream, SocketReply, StreamedReply
from agentbox.api.http.sending import send_reply, send_streamed
from agentbox.api.mesh.mesh_role import SESSION
from agentbox.api.metrics.http_metrics import UNMATCHED
from agentbox.api.services import Services
from agentbox.contracts.routes.matcher import RouteMatch, RouteMatcher
from agentbox.contracts.routes.route import Route
from agentbox.core.http.body import BodyReader, read_json, reject_body
from agentbox.core.http.headers import (
    SECURITY_HEADERS,
    allowed_hosts,
    check_accept,
    check_duplicates,
    check_host,
    check_probe_host,
    decode_headers,
    probe_hosts,
    request_id,
    trace_id,
)
from agentbox.core.http.problems import MethodNotAllowed, TooBusy, invalid, reply_for
from agentbox.core.http.sse import EventStreamCut, write_events
from agentbox.core.ids import new_trace_id, uuid7
from agentbox.core.slot_errors import NotFound

STREAM = "text/event-stream"
_LIVE = b'{"live":true,"uptime":%s}'


class Application:
    """Serves the routes of one listener. `/livez` is answered before any other check."""

    def __init__(self, services: Services, routes: Sequence[Route]) -> None:
        self._services = services
        self._matcher = RouteMatcher(routes)
        self._hosts, self._probe_hosts = allowed_hosts(services.plan), probe_hosts(services.plan)
        self._live = any(route.name == "livez" for route in routes)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        start = time.perf_counter()
        if scope["type"] == "websocket":
            await self._open_socket(scope, receive, send)
            return
        if self._live and scope["path"] == "/livez" and _is_plain_probe(scope):
            await self._answer_live(scope, send)
            self._services.http.count("/livez", scope["method"], 200, time.perf_counter() - start)
            return
        headers = decode_headers(scope["headers"])
        identity = request_id(headers)
        match = self._matcher.match(scope["method"], scope["raw_path"].decode("latin-1"))
        label = match.route.template if match and match.route else UNMATCHED
        incoming = BodyReader(receive, headers)
        with ExitStack() as stack:
            try:
                outcome = await self._handle(scope, incoming, match, headers, identity, stack)
            except Exception as error:  # noqa: BLE001 - a handler's error becomes a response, a bug 500 and a traceback
                outcome = reply_for(error, identity)
            if isinstance(outcome, EventStream):
                await self._stream(outcome, scope, receive, send, identity)
                self._services.http.count(label, scope["method"], 200, -1)
                return
            assert not isinstance(outcome, SocketReply), "a plain route returned a socket"
            if isinstance(outcome, StreamedReply):
                await send_streamed(
                    outcome, send, identity, scope["extensions"]["agentbox"]["abort"]
                )
            else:
                unread = (
                    match is None
                    or match.route is None
                    or (match.route.media == "any" and incoming.unread)
                )
                await send_reply(outcome, send, identity, close=unread)
        self._services.http.count(
            label, scope["method"], outcome.status, time.perf_counter() - start
        )

    async def _open_socket(self, scope: Any, receive: Any, send: Any) -> None:
        """A WebSocket is checked as the GET request that it starts as."""
        scope = {
            **scope,
            "method": "GET",
            "extensions": {"agentbox": {"crowding": scope["state"]["crowding"]}},
        }
        headers = decode_headers(scope["headers"])
        identity, match = (
            request_id(headers),
            self._matcher.match("GET", scope["raw_path"].decode("latin-1")),
        )
        label = match.route.template if match and match.route else UNMATCHED
        status = 101
        with ExitStack() as stack:
            try:
                outcome = await self._handle(
                    scope, BodyReader(receive, headers), match, headers, identity, stack
                )
                assert isinstance(outcome, SocketReply), "a socket route returned no socket"
            except Exception as error:  # noqa: BLE001 - as for any request
                refusal = reply_for(error, identity)
                status = refusal.status
                await refuse_socket(refusal, receive, send, identity)
            else:
                await serve_socket(outcome, receive, send, self._services.closing, identity)
        self._services.http.count(label, "GET", status, -1)

    async def _handle(
        self,
        scope: Any,
        incoming: BodyReader,
        match: RouteMatch | None,
        headers: dict[str, str],
        identity: str,
        stack: ExitStack,
    ) -> AnyReply:
        _check_crowding(scope, match)
        if match is None:
            check_host(headers, self._hosts)
            raise NotFound("cannot find this path", resource="path", id=scope["path"])
        if match.route is None:
            raise MethodNotAllowed(f"cannot {scope['method']} this path", allow=list(match.allow))
        route = match.route
        check_duplicates(scope["headers"])
        caller = self._authorize(route, headers)
        if route.socket != (scope["type"] == "websocket"):
            raise invalid(
                "Upgrade", "must be websocket" if route.socket else "is not supported for this path"
            )
        query = _query(route, scope["query_string"])
        body = None
        if route.body_limit == 0:
            reject_body(headers)
        elif route.media == "json":
            body = await read_json(
                route, headers, incoming.receive, self._services.plan.api.max_body
            )
        call = Call(
            services=self._services,
            route=route,
            method=scope["method"],
            parameters=match.parameters,
            query=query,
            headers=headers,
            body=body,
            incoming=incoming,
            caller=caller,
            request_id=identity,
        )
        context = CallContext(
            principal=caller.principal,
            scopes=caller.scopes,
            request_id=identity,
            agent_id=caller.agent_id or None,
            session_id=caller.session_id or None,
            trace_id=_trace_of(caller, headers),
        )
        stack.enter_context(as_caller(context))
        return await resolve_handler(route.handler)(call)

    def _authorize(self, route: Route, headers: dict[str, str]) -> Caller:
        """The caller. Probes are public, under any address and the box's names; every other route
        checks Host strictly.
        """
        if route.is_probe:
            check_probe_host(headers, self._probe_hosts)
            return ANONYMOUS
        check_host(headers, self._hosts)
        caller = ANONYMOUS if route.is_public else self._authenticate(route, headers)
        self._services.rates.acquire(caller)
        self._services.agent_rates.acquire(caller, route, headers)
        require(caller, route.scope)
        if route.media == "json":
            check_accept(headers, STREAM if route.stream else JSON)
        return caller

    def _authenticate(self, route: Route, headers: dict[str, str]) -> Caller:
        caller = self._services.authenticator.authenticate(
            headers.get("authorization"), include_ended=SESSION in route.scope
        )
        return resolve_on_behalf(caller, headers, route)

    async def _answer_live(self, scope: Any, send: Any) -> None:
        body = _LIVE % str(self._services.uptime).encode()
        raw = [
            *SECURITY_HEADERS,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        raw.append((b"x-request-id", uuid7().encode()))
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    async def _stream(
        self, stream: EventStream, scope: Any, receive: Any, send: Any, identity: str
    ) -> None:
        raw = [
            *SECURITY_HEADERS,
            (b"content-type", STREAM.encode()),
            (b"x-request-id", identity.encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        try:
            await write_events(
                stream.events, send, receive, self._services.closing, identity, stream.stall_seconds
            )
            await send({"type": "http.response.body", "body": b""})
        except EventStreamCut:
            scope["extensions"]["agentbox"]["abort"]()
        finally:
            stream.close()


def _trace_of(caller: Caller, headers: dict[str, str]) -> str:
    """An agent's own trace id; that of any other authenticated caller, or a new one."""
    return caller.trace_id or (trace_id(headers) if caller.principal else new_trace_id())


def _is_plain_probe(scope: Any) -> bool:
    """A GET or HEAD without a body, on a listener with free capacity."""
    if (
        scope["method"] not in ("GET", "HEAD")
        or scope["extensions"]["agentbox"]["crowding"] == "full"
    ):
        return False
    return not any(
        name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]
    )


def _check_crowding(scope: Any, match: RouteMatch | None) -> None:
    crowding = scope["extensions"]["agentbox"]["crowding"]
    if crowding == "full" or (crowding == "probes" and not (match and match.probe)):
        raise TooBusy("cannot serve this connection: too many open connections", retry_after=1)


def _query(route: Route, raw: bytes) -> dict[str, str]:
    """The query string. On a probe it is ignored."""
    if route.is_probe:
        return {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise invalid("?", "is not valid UTF-8") from None
    if unknown := [name for name, _ in pairs if name not in route.query]:
        raise invalid(f"?{unknown[0]}", "is unknown")
    if len(query := dict(pairs)) < len(pairs):
        raise invalid("?", "has a duplicate parameter")
    return query
