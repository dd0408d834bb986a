"""HTTP with this host's configuration: certificates, proxies, credentials of an index or of
~/.netrc.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

import certifi
import httpx

from agentbox.core.errors import AgentboxError
from agentbox.host.network.diagnosis import diagnose
from agentbox.host.packages.errors import (
    FetchError,
    FileMissingError,
    NoNetworkError,
    NotTrustedError,
)

_CHUNK_SIZE = 1 << 16
_ATTEMPTS = 3
NOT_FOUND = 404


class HttpClient:
    """A thread-safe client. `credentials` are sent to their own host only."""

    def __init__(
        self, settings: Mapping[str, str], credentials: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._credentials = dict(credentials or {})
        self._settings = settings
        timeout = float(settings.get("timeout") or settings.get("default-timeout") or 30)
        self._client = httpx.Client(
            verify=_tls(settings),
            proxy=settings.get("proxy") or None,
            timeout=httpx.Timeout(timeout, connect=15),
            limits=httpx.Limits(max_connections=32, max_keepalive_connections=16),
            follow_redirects=True,
        )

    def close(self) -> None:
        self._client.close()

    def get(self, url: str, accept: str = "*/*") -> httpx.Response | None:
        """Return the response, or None for 404. Raises FetchError if the host is unreachable or
        returns an error.
        """
        response = self._request_with_retry("GET", url, {"Accept": accept})
        return None if response.status_code == NOT_FOUND else response

    def size(self, url: str) -> int | None:
        """Return the length of a file in bytes, if its server states it."""
        if url.startswith("file:"):
            return local_path(url).stat().st_size
        response = self._request_with_retry("HEAD", url, {"Accept-Encoding": "identity"})
        length = response.headers.get("content-length", "")
        return int(length) if response.status_code == 200 and length.isdigit() else None

    @contextmanager
    def stream(self, url: str, offset: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Yield the actual offset and the chunks of a file from `offset`, or from 0 if the server
        does not support ranges.

        Raises FetchError.
        """
        if url.startswith("file:"):
            with local_path(url).open("rb") as source:
                source.seek(offset)
                yield offset, iter(lambda: source.read(_CHUNK_SIZE), b"")
            return
        headers = {"Accept-Encoding": "identity"} | (
            {"Range": f"bytes={offset}-"} if offset else {}
        )
        try:
            with self._client.stream("GET", url, headers=headers, auth=self._auth(url)) as response:
                if response.status_code not in (200, 206):
                    raise refused_error(url, response)
                yield (offset if response.status_code == 206 else 0), response.iter_raw()
        except httpx.HTTPError as error:
            raise self._unreachable(url, error) from error

    def _request_with_retry(
        self, method: str, url: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        failure: AgentboxError | None = None
        for _ in range(_ATTEMPTS):
            try:
                response = self._client.request(
                    method, url, headers=dict(headers), auth=self._auth(url)
                )
            except httpx.HTTPError as error:
                failure = self._unreachable(url, error)
                if isinstance(failure, NotTrustedError):
                    raise failure from error
                continue
            if response.status_code < 400 or response.status_code == NOT_FOUND:
                return response
            failure = refused_error(url, response)
        assert failure is not None
        raise failure

    def _unreachable(self, url: str, error: httpx.HTTPError) -> FetchError:
        cause = diagnose(
            url, bundle=self._settings.get("cert", ""), proxy=self._settings.get("proxy", "")
        )
        if cause is None:
            return unreachable_error(url, error)
        return NotTrustedError(f"cannot download {display_name(url)}: {cause.why}", cause.hint)

    def _auth(self, url: str) -> httpx.Auth | tuple[str, str] | None:
        host = urlsplit(url).hostname or ""
        if host in self._credentials:
            return self._credentials[host]
        return httpx.NetRCAuth() if (Path.home() / ".netrc").is_file() else None


def split_credentials(url: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a URL without user and password, and these by host."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, {parts.hostname or "": (unquote(parts.username), unquote(parts.password or ""))}


def local_path(url: str) -> Path:
    return Path(url2pathname(urlsplit(url).path))


def display_name(url: str) -> str:
    """Return the printable part of a URL: its last segment."""
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])


def refused_error(url: str, response: httpx.Response) -> FetchError:
    """Return the error for a response without the file."""
    error_class = FileMissingError if response.status_code == NOT_FOUND else FetchError
    reason = f"the server responded with {response.status_code}"
    return error_class(
        f"cannot download {display_name(url)}: {reason}", "Try again later, or use another mirror."
    )


def unreachable_error(url: str, error: Exception) -> NoNetworkError:
    """Return the error for a host that is unreachable or broke the connection."""
    return NoNetworkError(
        f"cannot download {display_name(url)}: {error or type(error).__name__}",
        "Connect to the network and try again.",
    )


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.get("cert") or None)
    if not settings.get("cert"):
        context.load_verify_locations(certifi.where())
    if client := settings.get("client-cert"):
        context.load_cert_chain(client)
    return context
