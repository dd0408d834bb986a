"""One plain HTTP request: sent on as our own, and the answer brought back."""

import asyncio
from collections.abc import Callable
from typing import Final

import h11

from agentbox.gateway.proxy.http_head import MAX_HEAD, back, onward
from agentbox.gateway.proxy.refusals import Sorry
from agentbox.gateway.proxy.target import Target
from agentbox.gateway.proxy.wire import Wire

IDLE_SECONDS: Final = 300.0  # between two parts of an answer
BODY_SECONDS: Final = 30.0  # between two parts of a request's body
_NO_BODY: Final = (204, 304)
Count = Callable[[int], None]


class Forward:
    """`client` is the h11 side that has read the request's head already."""

    def __init__(self, wire: Wire, client: h11.Connection, request: h11.Request, count: Count) -> None:
        self._wire, self._client, self._request, self._count = wire, client, request, count
        self.begun = False  # whether the client has a part of the answer

    async def run(self, target: Target, peer: Wire) -> None:
        """Returns when request and answer have passed. Raises Sorry when the answer is none, ConnectionResetError when the
        client is gone."""
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        await self._send(peer, server.send(onward(self._request, target)))
        upload = asyncio.create_task(self._upload(peer, server))
        answer = asyncio.create_task(self._answer(target, peer, server))
        try:
            await asyncio.wait({upload, answer}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                upload.result()
            await answer
        finally:
            for task in (upload, answer):
                task.cancel()
            await asyncio.gather(upload, answer, return_exceptions=True)
            peer.close()

    async def _upload(self, peer: Wire, server: h11.Connection) -> None:
        """Raises Sorry (400, 408). A target that takes no more of it may answer all the same."""
        try:
            await self._pass_body(peer, server)
        except h11.RemoteProtocolError as error:
            raise Sorry(400, "request", f"cannot read the body of this request: {error}") from error
        except TimeoutError:
            raise Sorry(408, "request", "cannot wait longer for the body of this request", counts=False) from None
        except ConnectionResetError:
            return

    async def _pass_body(self, peer: Wire, server: h11.Connection) -> None:
        if self._client.they_are_waiting_for_100_continue:
            going = self._client.send(h11.InformationalResponse(status_code=100, headers=[], reason="Continue"))
            await self._send(self._wire, going)
        while True:
            event = self._client.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(BODY_SECONDS):
                    self._client.receive_data(await self._wire.read())
            elif isinstance(event, h11.Data):
                await self._send(peer, server.send(h11.Data(data=event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self._send(peer, server.send(h11.EndOfMessage()))
                return
            else:
                return

    async def _answer(self, target: Target, peer: Wire, server: h11.Connection) -> None:
        """Raises Sorry (502, 504)."""
        try:
            await self._pass_answer(peer, server)
        except h11.RemoteProtocolError as error:
            said = f"cannot use the answer of {target.value}: it is no HTTP"
            raise Sorry(502, "answer", said, counts=False) from error
        except TimeoutError:
            said = f"cannot wait longer for {target.value}: it says nothing"
            raise Sorry(504, "answer", said, counts=False) from None

    async def _pass_answer(self, peer: Wire, server: h11.Connection) -> None:
        while True:
            event = server.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(IDLE_SECONDS):
                    server.receive_data(await peer.read())
            elif isinstance(event, h11.InformationalResponse):
                continue
            elif isinstance(event, h11.Response):
                bodiless = self._request.method == b"HEAD" or event.status_code in _NO_BODY
                self.begun = True
                await self._send(self._wire, self._client.send(back(event, bodiless=bodiless)))
            elif isinstance(event, h11.Data):
                await self._send(self._wire, self._client.send(h11.Data(data=event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self._send(self._wire, self._client.send(h11.EndOfMessage()))
                return
            else:
                raise h11.RemoteProtocolError("the connection was closed without an answer")

    async def _send(self, wire: Wire, data: bytes | None) -> None:
        if data:
            self._count(len(data))
            await wire.write(data)
