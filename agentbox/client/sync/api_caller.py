"""Calls operations of a box's API by name, synchronously."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agentbox.client.errors import ApiError, unreachable
from agentbox.client.http_transport import HttpTransport, Response, TransportError
from agentbox.client.streams import ENDED_EARLY, IDLE_TIMEOUT, RETRY_SECONDS, StreamResumption
from agentbox.client.transport import (
    Call,
    base_headers,
    build_call,
    check_response,
    parse_data,
    parse_error,
)
from agentbox.core.http.sse_parser import SseEvent, SseParser

if TYPE_CHECKING:
    from agentbox.client.sync.attach import Attached


class ApiCaller:
    """Calls the API of a box. Raises ApiError for an error response, BoxUnreachable without a
    response. Thread-safe."""

    def __init__(
        self, url: str, *, token: str = "", timeout: float = 10.0, ssl: SSLContext | None = None
    ) -> None:
        """`ssl`: trust settings of an https URL; None uses the system's certificate authorities."""
        self.url = url.rstrip("/")
        self._token, self._timeout, self._ssl = token, timeout, ssl
        self._http = HttpTransport(self.url, headers=base_headers(token), timeout=timeout, ssl=ssl)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def call(self, name: str, parameters: Mapping[str, str] | None = None, **options: Any) -> Any:
        """As `request`, but returns the JSON of the response, None for 204."""
        return parse_data(self.request(name, parameters, **options))

    def request(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        accepted: tuple[int, ...] = (),
        wait_s: float | None = None,
    ) -> Response:
        """Calls an operation by name. A status in `accepted` is not an error."""
        call = build_call(name, parameters, query=query, body=body, headers=headers)
        return self.send(call, accepted=accepted, wait_s=wait_s)

    def send(
        self, call: Call, *, accepted: tuple[int, ...] = (), wait_s: float | None = None
    ) -> Response:
        """Sends a request from `build_call`. A status in `accepted` is not an error."""
        return check_response(self._request(call, wait_s), accepted)

    @contextmanager
    def streaming(self, call: Call) -> Iterator[Response]:
        """The response with its body unread."""
        try:
            with self._http.stream(call.method, call.url, headers=call.headers) as response:
                if not response.is_success:
                    response.read()
                yield check_response(response, ())
        except TransportError as error:
            raise unreachable(self.url, error) from error

    def attach(self, agent_id: str, generation: int) -> "Attached":
        """Attaches to an agent's pipes; `agents.attach` also detaches."""
        return self.open_socket("attach_agent", {"id": agent_id}, query={"generation": generation})

    def open_socket(
        self,
        name: str,
        parameters: Mapping[str, str],
        *,
        query: Mapping[str, object] | None = None,
    ) -> "Attached":
        """Attaches to the pipes behind an operation that is a WebSocket."""
        # The library of WebSockets is imported on use.
        from agentbox.client.attach import connect_options, socket_url
        from agentbox.client.sync.attach import attach

        url, headers = socket_url(self.url, name, parameters, query), base_headers(self._token)
        return attach(self.url, url, **connect_options(self.url, headers, self._ssl, self._timeout))

    def stream(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        last: str = "",
        since: str = "",
        reconnect_timeout: float = 60.0,
    ) -> Iterator[SseEvent]:
        """Events of a streaming operation, each once and in order, across reconnects
        (Last-Event-ID).

        With `last` the stream ends at the first event of that type; an end without it counts as
        broken. Starts after the id `since`.
        """
        resume = StreamResumption(reconnect_timeout, since)
        while True:
            try:
                for event in self._events(
                    build_call(name, parameters, query=query, headers=resume.headers())
                ):
                    resume.on_event(event)
                    yield event
                    if event.event == last:
                        return
                if not last:
                    return
                raise TransportError(ENDED_EARLY)
            except ApiError as error:
                if not resume.may_retry(error):
                    raise
            except TransportError as error:
                if not resume.may_retry(error):
                    raise unreachable(self.url, error) from error
            time.sleep(RETRY_SECONDS)

    def _request(self, call: Call, wait_s: float | None) -> Response:
        try:
            return self._http.request(
                call.method,
                call.url,
                headers=call.headers,
                body=call.body,
                content=call.content,
                timeout=wait_s,
            )
        except TransportError as error:
            raise unreachable(self.url, error) from error

    def _events(self, call: Call) -> Iterator[SseEvent]:
        opened = self._http.stream(
            call.method,
            call.url,
            headers=call.headers,
            timeout=IDLE_TIMEOUT,
            connect_s=self._timeout,
        )
        with opened as response:
            if not response.is_success:
                response.read()
                raise parse_error(response)
            parser = SseParser()
            for chunk in response.iter_bytes():
                yield from parser.feed(chunk)
