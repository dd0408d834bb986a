"""One connection of a client: its requests one after another, or one tunnel."""

import asyncio
import base64
import binascii
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

import h11

from agentbox.gateway.agent_api.approvals_required import waits
from agentbox.gateway.authorizer import Refused
from agentbox.gateway.proxy.account import Account
from agentbox.gateway.proxy.dial import dial
from agentbox.gateway.proxy.forward import Forward
from agentbox.gateway.proxy.http_head import MAX_HEAD, judge
from agentbox.gateway.proxy.refusals import Sorry, response
from agentbox.gateway.proxy.target import Target, of_connect, of_url
from agentbox.gateway.proxy.tunnel import tunnel
from agentbox.gateway.proxy.wire import Wire
from agentbox.policy.rights.standing import Standing

if TYPE_CHECKING:
    from agentbox.gateway.proxy.proxy import Proxy

HEAD_SECONDS: Final = 10.0  # for all of a head, however it comes
KEPT_SECONDS: Final = 60.0  # between two requests
LINGER_SECONDS: Final = 1.0
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_END: Final = b"\r\n\r\n"


class Session:
    """Serves until either side has had enough."""

    def __init__(self, proxy: "Proxy", wire: Wire) -> None:
        self._proxy, self._wire = proxy, wire
        self._rest = b""  # read, and not yet looked at
        self._begun = False  # with a head
        self._who: Standing | None = None

    async def serve(self) -> None:
        """Never raises what a client or a target did."""
        try:
            while await self._request():
                pass
        except ConnectionResetError:
            pass  # the client is gone
        except Sorry as sorry:
            await self._apologise(sorry, answer=True)
        finally:
            self._wire.close()

    async def _request(self) -> bool:
        """Whether another may follow. Raises Sorry while nothing of an answer was sent."""
        head = await self._head()
        if not head:
            return False
        judge(head)
        client = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        request = _parsed(client, head)
        self._who = who = self._identify(request)
        account = self._proxy.accounts.of(who)
        account.check()
        account.open += 1
        try:
            if request.method == b"CONNECT":
                await self._tunnel(account, request)
                return False
            return await self._forward(account, client, request)
        finally:
            account.open -= 1
            self._proxy.accounts.forget(account)

    async def _head(self) -> bytes:
        """All up to the empty line; empty at the end of the connection. Raises Sorry (408, 431)."""
        said = b""
        try:
            async with asyncio.timeout(KEPT_SECONDS if self._who else HEAD_SECONDS) as clock:
                while (at := (said := (said + self._rest).lstrip(b"\r\n")).find(_END)) < 0 and len(said) <= MAX_HEAD:
                    if said and not self._begun:
                        self._begun = True
                        clock.reschedule(asyncio.get_running_loop().time() + HEAD_SECONDS)
                    if not (data := await self._wire.read()):
                        return b""
                    self._rest = data
        except TimeoutError:
            if not said:
                return b""
            raise Sorry(
                408, "request", f"cannot wait longer: a head takes {HEAD_SECONDS:g} s at most", counts=False
            ) from None
        if not 0 <= at <= MAX_HEAD:
            raise Sorry(431, "request", f"cannot read this request: its head is larger than {MAX_HEAD} bytes")
        self._begun, self._rest = False, said[at + len(_END) :]
        return said[: at + len(_END)]

    def _identify(self, request: h11.Request) -> Standing:
        sent = [value for name, value in request.headers if name == b"proxy-authorization"]
        token = _token(sent[0]) if len(sent) == 1 else ""
        try:
            who = self._proxy.authority.identify(token)
        except Refused as refused:
            hint = "send Proxy-Authorization with the token of AGENTBOX_TOKEN"
            raise Sorry(407, refused.rule, f"cannot tell who asks: {refused.reason}; {hint}", counts=False) from refused
        self._proxy.known(self._wire)
        return who

    async def _tunnel(self, account: Account, request: h11.Request) -> None:
        target = of_connect(request.target.decode("latin-1"))
        early, self._rest = self._rest, b""

        async def work() -> None:
            peer = await dial(target, self._proxy.reach, self._proxy.resolver)
            try:
                await self._wire.write(_ESTABLISHED)
                begun.append(target)
                if early:
                    account.take(len(early))
                    await peer.write(early)
                await tunnel(self._wire, peer, account.take)
            finally:
                peer.close()

        begun: list[Target] = []
        try:
            await self._while_allowed(account.who, target, "", "", work())
        except TimeoutError:
            self._wire.cut()
        except Sorry as sorry:
            if not begun:
                raise
            await self._apologise(sorry, answer=False)

    async def _forward(self, account: Account, client: h11.Connection, request: h11.Request) -> bool:
        target = of_url(request.target.decode("latin-1"))
        if self._rest:
            client.receive_data(self._rest)
        method, path = request.method.decode("ascii"), target.path.partition("?")[0]
        work = Forward(self._wire, client, request, account.take)

        async def forward() -> None:
            await work.run(target, await dial(target, self._proxy.reach, self._proxy.resolver))

        try:
            await self._while_allowed(account.who, target, method, path, forward())
        except Sorry as sorry:
            if not work.begun:
                raise
            await self._apologise(sorry, answer=False)
            return False
        self._rest = bytes(client.trailing_data[0])
        return client.our_state is h11.DONE and client.their_state is h11.DONE

    async def _while_allowed(
        self, who: Standing, target: Target, method: str, path: str, work: Coroutine[Any, Any, None]
    ) -> None:
        """Asks before, and again whenever anything is taken back from the agent. Raises Sorry (403)."""
        task: asyncio.Task[None] | None = None
        try:
            while True:
                cut = self._proxy.authority.revoked(who)
                await self._allowed(who, target, method, path, take=task is None)
                task = task or asyncio.create_task(work)
                await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return task.result()
        finally:
            if task is None:
                work.close()
            else:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _allowed(self, who: Standing, target: Target, method: str, path: str, *, take: bool) -> None:
        authority = self._proxy.authority
        try:
            if take and waits(who, "host", target.value):
                await authority.check(who, "net", "connect", target.value, method=method, path=path, take=False)
                asked = {"target": target.value, "method": method, "path": target.path}  # whole: a query says much
                await authority.approve(who, "host", target.value, asked)
            await authority.check(who, "net", "connect", target.value, method=method, path=path, take=take)
        except Refused as refused:
            what = f"{method} {path} of {target.value}" if method else target.value
            hint = "An operator grants it with a net rule of the agent's policy, below egress.allow."
            raise Sorry(403, refused.rule, f"cannot reach {what}: {refused.reason}. {hint}") from refused

    async def _apologise(self, sorry: Sorry, *, answer: bool) -> None:
        if sorry.counts and self._who is not None:
            self._proxy.authority.denied(self._who, "proxy", sorry.rule, sorry.sentence)
        if not answer:
            self._wire.cut()
            return
        sender = h11.Connection(h11.SERVER)
        head, body = response(sorry)
        parts = [sender.send(part) for part in (head, h11.Data(data=body), h11.EndOfMessage())]
        try:
            await self._wire.write(b"".join(part for part in parts if part))
            await self._linger()
        except (ConnectionResetError, TimeoutError):
            return

    async def _linger(self) -> None:
        """Takes in what the client still sends, for a while: a close with something unread would wipe out the answer."""
        self._wire.end()
        async with asyncio.timeout(LINGER_SECONDS):
            while await self._wire.read():
                pass


def _parsed(client: h11.Connection, head: bytes) -> h11.Request:
    """Raises Sorry (400)."""
    try:
        client.receive_data(head)
        event = client.next_event()
    except h11.RemoteProtocolError as error:
        raise Sorry(error.error_status_hint, "request", f"cannot read this request: {error}") from error
    assert isinstance(event, h11.Request)
    return event


def _token(header: bytes) -> str:
    """Of `Bearer <token>`, or of `Basic` with the name agent; "" for anything else."""
    scheme, _, value = header.decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        name, _, token = base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return token if name == "agent" else ""
