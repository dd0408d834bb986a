"""Forwards one plain HTTP request and relays its response."""

import asyncio
from collections.abc import Callable
from typing import Final

import h11

from agentbox.gateway.proxy.http_head import MAX_HEAD, client_response, upstream_request
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.stream import ProxyStream
from agentbox.gateway.proxy.target import ProxyTarget

IDLE_SECONDS: Final = 300.0  # between two parts of a response
BODY_SECONDS: Final = 30.0  # between two parts of a request body
_NO_BODY: Final = (204, 304)
ByteCounter = Callable[[int], None]


class RequestForwarder:
    """`client` is the h11 server-side connection that has read the request head."""

    def __init__(
        self, stream: ProxyStream, client: h11.Connection, request: h11.Request, count: ByteCounter
    ) -> None:
        self._stream, self._client, self._request, self._count = stream, client, request, count
        self.response_started = False  # whether response data was sent to the client

    async def run(self, target: ProxyTarget, peer: ProxyStream) -> None:
        """Returns once request and response are relayed. Raises ProxyRefusal for an invalid
        response, ConnectionResetError if the client disconnected."""
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        await self._send(peer, server.send(upstream_request(self._request, target)))
        upload = asyncio.create_task(self._upload(peer, server))
        download = asyncio.create_task(self._download(target, peer, server))
        try:
            await asyncio.wait({upload, download}, return_when=asyncio.FIRST_COMPLETED)
            if not download.done():
                upload.result()
            await download
        finally:
            for task in (upload, download):
                task.cancel()
            await asyncio.gather(upload, download, return_exceptions=True)
            peer.close()

    async def _upload(self, peer: ProxyStream, server: h11.Connection) -> None:
        """Raises ProxyRefusal (400, 408). A target that stops reading may still respond."""
        try:
            await self._relay_body(peer, server)
        except h11.RemoteProtocolError as error:
            raise ProxyRefusal(
                400, "request", f"cannot read the body of this request: {error}"
            ) from error
        except TimeoutError:
            raise ProxyRefusal(
                408, "request", "timed out waiting for the body of this request", is_denial=False
            ) from None
        except ConnectionResetError:
            return

    async def _relay_body(self, peer: ProxyStream, server: h11.Connection) -> None:
        if self._client.they_are_waiting_for_100_continue:
            interim = self._client.send(
                h11.InformationalResponse(status_code=100, headers=[], reason="Continue")
            )
            await self._send(self._stream, interim)
        while True:
            event = self._client.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(BODY_SECONDS):
                    self._client.receive_data(await self._stream.read())
            elif isinstance(event, h11.Data):
                await self._send(peer, server.send(h11.Data(data=event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self._send(peer, server.send(h11.EndOfMessage()))
                return
            else:
                return

    async def _download(
        self, target: ProxyTarget, peer: ProxyStream, server: h11.Connection
    ) -> None:
        """Raises ProxyRefusal (502, 504)."""
        try:
            await self._relay_response(peer, server)
        except h11.RemoteProtocolError as error:
            message = f"cannot use the response of {target.value}: it is not valid HTTP"
            raise ProxyRefusal(502, "answer", message, is_denial=False) from error
        except TimeoutError:
            message = f"timed out waiting for {target.value}"
            raise ProxyRefusal(504, "answer", message, is_denial=False) from None

    async def _relay_response(self, peer: ProxyStream, server: h11.Connection) -> None:
        while True:
            event = server.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(IDLE_SECONDS):
                    server.receive_data(await peer.read())
            elif isinstance(event, h11.InformationalResponse):
                continue
            elif isinstance(event, h11.Response):
                bodiless = self._request.method == b"HEAD" or event.status_code in _NO_BODY
                self.response_started = True
                await self._send(
                    self._stream, self._client.send(client_response(event, has_no_body=bodiless))
                )
            elif isinstance(event, h11.Data):
                await self._send(self._stream, self._client.send(h11.Data(data=event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self._send(self._stream, self._client.send(h11.EndOfMessage()))
                return
            else:
                raise h11.RemoteProtocolError("the connection was closed without a response")

    async def _send(self, stream: ProxyStream, data: bytes | None) -> None:
        if data:
            self._count(len(data))
            await stream.write(data)
