"""An npm registry on loopback for the real client: package documents and tarballs are generated."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast
from urllib.parse import unquote


class Registry(ThreadingHTTPServer):
    """`publish` adds a version. A context manager; `url` is the value for npm_config_registry."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.documents: dict[str, dict[str, Any]] = {}
        self.tarballs: dict[str, bytes] = {}
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def publish(self, name: str, version: str, **manifest: Any) -> None:
        """Adds a version, which becomes the latest."""
        described = {"name": name, "version": version, **manifest}
        data = _packed(described)
        place = f"{name}/-/{version}.tgz"
        self.tarballs[place] = data
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {
            "tarball": f"{self.url}{place}",
            "integrity": integrity,
            "shasum": hashlib.sha1(data).hexdigest(),
        }
        scripted = {"hasInstallScript": True} if "install" in manifest.get("scripts", {}) else {}
        document = self.documents.setdefault(name, {"name": name, "versions": {}})
        document["versions"][version] = {**described, **scripted, "dist": dist}
        document["dist-tags"] = {"latest": version}

    def withdraw(self, name: str, version: str) -> None:
        """Stops serving the version."""
        del self.documents[name]["versions"][version]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


def _packed(described: dict[str, Any]) -> bytes:
    out, text = io.BytesIO(), json.dumps(described).encode()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("package/package.json")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server, name = cast("Registry", self.server), unquote(self.path).strip("/")
        if name in server.tarballs:
            self._answer(200, server.tarballs[name])
        elif name in server.documents:
            self._answer(200, json.dumps(server.documents[name]).encode())
        else:
            self._answer(404, b"{}")

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silent."""
