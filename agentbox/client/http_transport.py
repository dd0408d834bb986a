"""HTTP/1.1 for the synchronous client, on `http.client`: importing a library would cost each
command 60 to 180 ms.

Connections are reused while idle for less than the box's limit; broken ones never.
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

IDLE_SECONDS: Final = 4.0  # a box closes connections idle for 5 s
_MAX_IDLE: Final = 20  # idle connections
_CHUNK: Final = 64 << 10


class TransportError(Exception):
    """No complete response was received."""


class ConnectError(TransportError):
    """The connection failed, so nothing was sent."""


class Headers(Mapping[str, str]):
    """Case-insensitive headers; repeated values are joined by a comma."""

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
    """A response; `content` is set once it was read."""

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
        """The whole body. Raises TransportError if it is incomplete."""
        self.content += b"".join(self.iter_bytes())
        return self.content

    def iter_bytes(self) -> Iterator[bytes]:
        """The body in chunks. Raises TransportError if it is incomplete."""
        with _translate_errors():
            while chunk := self._raw.read1(_CHUNK):
                yield chunk
            if self._raw.length:  # missing bytes of a Content-Length
                raise http.client.IncompleteRead(b"", self._raw.length)
            self._raw.close()  # frees the connection for the next request


class HttpTransport:
    """Requests to one origin. Thread-safe. Ignores proxy settings."""

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
        """The whole response; `options` as for `stream`. Raises TransportError."""
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
        """The response with its body unread. `body` is sent as JSON, `content` unchanged; `timeout`
        (seconds) bounds each read, `connect_s` the connecting. Raises TransportError."""
        read_timeout = self._timeout if timeout is None else timeout
        all_headers = {**self._headers, **headers}
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            all_headers = {"Content-Type": "application/json", **all_headers}
        connection = self._pop_idle() or self._connect(
            read_timeout if connect_s is None else connect_s
        )
        reusable = False
        try:
            connection.sock.settimeout(read_timeout)
            with _translate_errors():
                with suppress(
                    BrokenPipeError, ConnectionResetError
                ):  # the server may respond before the end of the body
                    connection.request(
                        method, f"{self._url.path}{url}", body=content, headers=all_headers
                    )
                raw = connection.getresponse()
                if (
                    raw.length is None and not raw.chunked
                ):  # would accept a truncated response as complete
                    raise http.client.HTTPException("the response has no length")
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

    def _pop_idle(self) -> http.client.HTTPConnection | None:
        """An idle connection that the server has not closed."""
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
    """False if data or EOF arrived unexpectedly."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return not poll.poll(0)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise TransportError(str(error) or type(error).__name__) from error
