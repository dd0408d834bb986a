"""HTTP/1.1 for the synchronous client, on `http.client`: a library costs every command 60 to 180 ms of imports.

A connection is used again while it is idle for less than the box keeps it; one that broke is never reused.
"""

import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import urlsplit

IDLE_SECONDS: Final = 4.0  # a box closes a connection that was idle for 5 s
_MAX_IDLE: Final = 20  # idle connections
_CHUNK: Final = 64 << 10


class TransportError(Exception):
    """No complete answer came."""


class ConnectError(TransportError):
    """No connection was made, so nothing was sent."""


class Headers(Mapping[str, str]):
    """Names in any case; values of a repeated name are joined by a comma."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            existing = self._values.get(name.lower())
            self._values[name.lower()] = value if existing is None else f"{existing}, {value}"

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Response:
    """An answer; its `content` is there once it was read."""

    def __init__(self, raw: http.client.HTTPResponse) -> None:
        self._raw = raw
        self.status_code = raw.status
        self.headers = Headers(raw.getheaders())
        self.content = b""

    @property
    def is_success(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status_code < 300

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.content)

    def read(self) -> bytes:
        """The whole body. Raises TransportError when it ends early."""
        self.content += b"".join(self.iter_bytes())
        return self.content

    def iter_bytes(self) -> Iterator[bytes]:
        """The body in pieces as they come. Raises TransportError when it ends early."""
        with _translate_errors():
            while chunk := self._raw.read1(_CHUNK):
                yield chunk
            if self._raw.length:  # of a Content-Length
                raise http.client.IncompleteRead(b"", self._raw.length)
            self._raw.close()  # the connection is free for the next request


class HttpTransport:
    """Requests to one origin. Thread-safe. Asks no proxy."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str], timeout: float, ssl: SSLContext | None = None
    ) -> None:
        self._url, self._headers, self._timeout, self._ssl = urlsplit(url), headers, timeout, ssl
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _since, connection in idle:
            connection.close()

    def request(self, method: str, url: str, **options: Any) -> Response:
        """The whole answer; `more` as of `stream`. Raises TransportError."""
        with self.stream(method, url, **options) as response:
            response.read()
        return response

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: Any = None,
        content: bytes | Iterable[bytes] | None = None,
        timeout: float | None = None,
        connect_s: float | None = None,
    ) -> Iterator[Response]:
        """The answer, its body still on its way. `body` is sent as JSON, `content` as it is; `timeout` (seconds) bounds
        each silence, `connect_s` the connecting. Raises TransportError."""
        read_timeout = self._timeout if timeout is None else timeout
        all_headers = {**self._headers, **headers}
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            all_headers = {"Content-Type": "application/json", **all_headers}
        connection = self._take_idle() or self._connect(
            read_timeout if connect_s is None else connect_s
        )
        reusable = False
        try:
            connection.sock.settimeout(read_timeout)
            with _translate_errors():
                with suppress(
                    BrokenPipeError, ConnectionResetError
                ):  # refused before the end of the body: read why
                    connection.request(
                        method, f"{self._url.path}{url}", body=content, headers=all_headers
                    )
                raw = connection.getresponse()
                if (
                    raw.length is None and not raw.chunked
                ):  # a head that was cut off, too, ends where the connection does
                    raise http.client.HTTPException("the answer has no length")
            yield Response(raw)
            reusable = raw.isclosed() and not raw.will_close
        finally:
            if reusable:
                self._release(connection)
            else:
                connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout, context=self._ssl
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise ConnectError(str(error) or type(error).__name__) from error
        return connection

    def _take_idle(self) -> http.client.HTTPConnection | None:
        """An idle connection that the other end still has open."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and _is_open(connection.sock):
                return connection
            connection.close()

    def _release(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()


def _is_open(sock: socket.socket) -> bool:
    """False when something came unasked: the end, mostly."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return not poll.poll(0)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise TransportError(str(error) or type(error).__name__) from error
