"""A package index of one wheel, served over plain HTTP on loopback."""

from __future__ import annotations

import base64
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROJECT, WHEEL = "behind-proxy", "behind_proxy-1.0-py3-none-any.whl"


def make_index(directory: Path) -> str:
    """Writes `simple/` with the project; returns its requirement with the hash."""
    project = directory / "simple" / PROJECT
    project.mkdir(parents=True)
    info = "behind_proxy-1.0.dist-info"
    files = {
        "behind_proxy.py": "ANSWER = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PROJECT}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    with zipfile.ZipFile(project / WHEEL, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            wheel.writestr(name, text)
    digest = hashlib.sha256((project / WHEEL).read_bytes()).hexdigest()
    page = f'<!DOCTYPE html><a href="{WHEEL}#sha256={digest}">{WHEEL}</a>'
    (project / "index.html").write_text(page)
    return f"{PROJECT}==1.0 --hash=sha256:{digest}\n"


@contextmanager
def serve_files(directory: Path, address: str = "127.0.0.1") -> Iterator[int]:
    """The port of a server of these files, until the block ends."""
    handler = partial(_Quiet, directory=str(directory))
    with ThreadingHTTPServer((address, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
