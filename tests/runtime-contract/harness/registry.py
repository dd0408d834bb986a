"""A read-only image registry on loopback that serves one image archive by digest: the pull half of the OCI
distribution specification (v1.1), which engines accept without TLS on 127.0.0.0/8."""

from __future__ import annotations

import shutil
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_UNKNOWN = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'


@contextmanager
def registry(archive: Path, forged: Mapping[str, str] | None = None) -> Iterator[str]:
    """`127.0.0.1:<port>` while the body runs. `forged`: digests under which it answers with the bytes of others."""
    with tarfile.open(archive) as tar:
        blobs = {
            f"sha256:{member.name.rpartition('/')[2]}": (member.offset_data, member.size)
            for member in tar
            if member.name.startswith("blobs/sha256/") and member.isfile()
        }
    blobs |= {digest: blobs[other] for digest, other in (forged or {}).items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            kind, _, digest = self.path.rpartition("/")
            if self.path == "/v2/":
                self._head(200, "application/json", 0)
            elif digest not in blobs:
                self._head(404, "application/json", len(_UNKNOWN))
                if body:
                    self.wfile.write(_UNKNOWN)
            else:
                self._blob(
                    digest,
                    _MANIFEST if kind.endswith("/manifests") else "application/octet-stream",
                    body=body,
                )

        def _blob(self, digest: str, media_type: str, *, body: bool) -> None:
            offset, size = blobs[digest]
            self._head(200, media_type, size, digest)
            if not body:
                return
            with archive.open("rb") as stream:
                stream.seek(offset)
                shutil.copyfileobj(_Part(stream.read, size), self.wfile, 1 << 20)

        def _head(self, status: int, media_type: str, size: int, digest: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(size))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """The engine's requests are not the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Part:
    """The next `left` bytes of a stream."""

    def __init__(self, read: object, left: int) -> None:
        self._read = read
        self._left = left

    def read(self, size: int) -> bytes:
        data: bytes = self._read(min(size, self._left))  # type: ignore[operator]
        self._left -= len(data)
        return data
