"""One client connection: a sequence of requests, or one tunnel."""

import asyncio
import base64
import binascii
from collections.abc import Callable, Coroutine
from typing import Any, Final

import h11

from agentbox.core.frozen import frozen
from agentbox.gateway.agent_api.approvals_required import is_approval_required
from agentbox.gateway.authorizer import AccessDenied, Authorizer
from agentbox.gateway.proxy.agent_traffic import AgentTraffic, TrafficRegistry
from agentbox.gateway.proxy.dial import dial
from agentbox.gateway.proxy.egress_config import EgressConfig
from agentbox.gateway.proxy.forward import RequestForwarder
from agentbox.gateway.proxy.http_head import MAX_HEAD, check_head
from agentbox.gateway.proxy.refusals import ProxyRefusal, refusal_response
from agentbox.gateway.proxy.resolve import Resolver
from agentbox.gateway.proxy.stream import ProxyStream
from agentbox.gateway.proxy.target import ProxyTarget, parse_connect, parse_url
from agentbox.gateway.proxy.tunnel import tunnel
from agentbox.policy.rights.authorization import Authorization

HEAD_SECONDS: Final = 10.0  # for a complete head
KEEP_ALIVE_SECONDS: Final = 60.0  # between two requests
LINGER_SECONDS: Final = 1.0
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_HEAD_END: Final = b"\r\n\r\n"


@frozen
class ProxyContext:
    """What all sessions of a proxy share. `on_authenticated` is called for a connection that sent a
    valid token."""

    authorizer: Authorizer
    egress: EgressConfig
    traffic: TrafficRegistry
    resolver: Resolver
    on_authenticated: Callable[[ProxyStream], None]


class ProxySession:
    """Serves a connection until either side closes it."""

    def __init__(self, context: ProxyContext, stream: ProxyStream) -> None:
        self._context, self._stream = context, stream
        self._buffer = b""  # received, not yet parsed
        self._head_started = False
        self._caller: Authorization | None = None

    async def serve(self) -> None:
        """Never raises for errors of the client or the target."""
        try:
            while await self._serve_request():
                pass
        except ConnectionResetError:
            pass  # the client disconnected
        except ProxyRefusal as refusal:
            await self._send_refusal(refusal, respond=True)
        finally:
            self._stream.close()

    async def _serve_request(self) -> bool:
        """Returns whether another request may follow. Raises ProxyRefusal before a response has
        begun."""
        head = await self._read_head()
        if not head:
            return False
        check_head(head)
        client = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        request = _parse_request(client, head)
        self._caller = caller = self._identify(request)
        traffic = self._context.traffic.get(caller)
        traffic.check()
        traffic.open_connections += 1
        try:
            if request.method == b"CONNECT":
                await self._tunnel(traffic, request)
                return False
            return await self._forward(traffic, client, request)
        finally:
            traffic.open_connections -= 1
            self._context.traffic.discard(traffic)

    async def _read_head(self) -> bytes:
        """Reads up to the empty line; returns b"" at the end of the connection. Raises ProxyRefusal
        (408, 431)."""
        received = b""
        try:
            async with asyncio.timeout(
                KEEP_ALIVE_SECONDS if self._caller else HEAD_SECONDS
            ) as deadline:
                while (
                    end := (received := (received + self._buffer).lstrip(b"\r\n")).find(_HEAD_END)
                ) < 0 and len(received) <= MAX_HEAD:
                    if received and not self._head_started:
                        self._head_started = True
                        deadline.reschedule(asyncio.get_running_loop().time() + HEAD_SECONDS)
                    if not (data := await self._stream.read()):
                        return b""
                    self._buffer = data
        except TimeoutError:
            if not received:
                return b""
            raise ProxyRefusal(
                408,
                "request",
                f"timed out: a request head must arrive within {HEAD_SECONDS:g} s",
                is_denial=False,
            ) from None
        if not 0 <= end <= MAX_HEAD:
            raise ProxyRefusal(
                431,
                "request",
                f"cannot read this request: its head is larger than {MAX_HEAD} bytes",
            )
        self._head_started, self._buffer = False, received[end + len(_HEAD_END) :]
        return received[: end + len(_HEAD_END)]

    def _identify(self, request: h11.Request) -> Authorization:
        credentials = [value for name, value in request.headers if name == b"proxy-authorization"]
        token = _parse_token(credentials[0]) if len(credentials) == 1 else ""
        try:
            caller = self._context.authorizer.identify(token)
        except AccessDenied as denied:
            hint = "send Proxy-Authorization with the token of AGENTBOX_TOKEN"
            raise ProxyRefusal(
                407,
                denied.rule,
                f"cannot determine the caller: {denied.reason}; {hint}",
                is_denial=False,
            ) from denied
        self._context.on_authenticated(self._stream)
        return caller

    async def _tunnel(self, traffic: AgentTraffic, request: h11.Request) -> None:
        target = parse_connect(request.target.decode("latin-1"))
        buffered, self._buffer = self._buffer, b""

        async def work() -> None:
            peer = await dial(target, self._context.egress, self._context.resolver)
            try:
                await self._stream.write(_ESTABLISHED)
                established.append(target)
                if buffered:
                    traffic.count_bytes(len(buffered))
                    await peer.write(buffered)
                await tunnel(self._stream, peer, traffic.count_bytes)
            finally:
                peer.close()

        established: list[ProxyTarget] = []
        try:
            await self._run_while_allowed(traffic.caller, target, "", "", work())
        except TimeoutError:
            self._stream.abort()
        except ProxyRefusal as refusal:
            if not established:
                raise
            await self._send_refusal(refusal, respond=False)

    async def _forward(
        self, traffic: AgentTraffic, client: h11.Connection, request: h11.Request
    ) -> bool:
        target = parse_url(request.target.decode("latin-1"))
        if self._buffer:
            client.receive_data(self._buffer)
        method, path = request.method.decode("ascii"), target.path.partition("?")[0]
        forwarder = RequestForwarder(self._stream, client, request, traffic.count_bytes)

        async def forward() -> None:
            await forwarder.run(
                target, await dial(target, self._context.egress, self._context.resolver)
            )

        try:
            await self._run_while_allowed(traffic.caller, target, method, path, forward())
        except ProxyRefusal as refusal:
            if not forwarder.response_started:
                raise
            await self._send_refusal(refusal, respond=False)
            return False
        self._buffer = bytes(client.trailing_data[0])
        return client.our_state is h11.DONE and client.their_state is h11.DONE

    async def _run_while_allowed(
        self,
        caller: Authorization,
        target: ProxyTarget,
        method: str,
        path: str,
        work: Coroutine[Any, Any, None],
    ) -> None:
        """Checks access first, and again whenever a right of the agent is revoked. Raises
        ProxyRefusal (403)."""
        task: asyncio.Task[None] | None = None
        try:
            while True:
                revocation = self._context.authorizer.revocation(caller)
                await self._check_access(caller, target, method, path, consume=task is None)
                task = task or asyncio.create_task(work)
                await asyncio.wait({task, revocation}, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return task.result()
        finally:
            if task is None:
                work.close()
            else:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _check_access(
        self, caller: Authorization, target: ProxyTarget, method: str, path: str, *, consume: bool
    ) -> None:
        authorizer = self._context.authorizer
        try:
            if consume and is_approval_required(caller, "host", target.value):
                await authorizer.check(
                    caller, "net", "connect", target.value, method=method, path=path, consume=False
                )
                request = {
                    "target": target.value,
                    "method": method,
                    "path": target.path,
                }  # the approval shows the query too
                await authorizer.approve(caller, "host", target.value, request)
            await authorizer.check(
                caller, "net", "connect", target.value, method=method, path=path, consume=consume
            )
        except AccessDenied as denied:
            subject = f"{method} {path} of {target.value}" if method else target.value
            hint = (
                "An operator can allow it with a net rule in the agent's policy,"
                " within egress.allow."
            )
            raise ProxyRefusal(
                403, denied.rule, f"cannot reach {subject}: {denied.reason}. {hint}"
            ) from denied

    async def _send_refusal(self, refusal: ProxyRefusal, *, respond: bool) -> None:
        if refusal.is_denial and self._caller is not None:
            self._context.authorizer.report_denial(
                self._caller, "proxy", refusal.rule, refusal.message
            )
        if not respond:
            self._stream.abort()
            return
        sender = h11.Connection(h11.SERVER)
        head, body = refusal_response(refusal)
        chunks = [sender.send(item) for item in (head, h11.Data(data=body), h11.EndOfMessage())]
        try:
            await self._stream.write(b"".join(chunk for chunk in chunks if chunk))
            await self._linger()
        except (ConnectionResetError, TimeoutError):
            return

    async def _linger(self) -> None:
        """Reads what the client still sends: closing with unread data would discard the
        response."""
        self._stream.write_eof()
        async with asyncio.timeout(LINGER_SECONDS):
            while await self._stream.read():
                pass


def _parse_request(client: h11.Connection, head: bytes) -> h11.Request:
    """Raises ProxyRefusal (400)."""
    try:
        client.receive_data(head)
        event = client.next_event()
    except h11.RemoteProtocolError as error:
        raise ProxyRefusal(
            error.error_status_hint, "request", f"cannot read this request: {error}"
        ) from error
    assert isinstance(event, h11.Request)
    return event


def _parse_token(header: bytes) -> str:
    """The token of `Bearer <token>`, or of `Basic` with the user name agent; else ""."""
    scheme, _, value = header.decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        name, _, token = (
            base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")
        )
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return token if name == "agent" else ""
