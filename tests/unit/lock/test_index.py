"""The package index (simple API), with the configuration of the host's pip."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentbox.host.packages.errors import FetchError, NoNetworkError
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import PipConfig, _settings
from agentbox.host.packages.python.python_resolver import served_file
from agentbox.host.packages.python.tags import installable
from agentbox.host.packages.python.target import Target
from agentbox.host.packages.transfer.http_client import display_name, split_credentials

SHA = "ab" * 32
HTML = f'<a href="../../f/x-1-py3-none-any.whl#sha256={SHA}">x</a><a href="/f/x-1.tar.gz" data-yanked="">y</a><a>z</a>'
JSON: dict[str, Any] = {
    "files": [
        {
            "filename": "y-2-cp313-cp313-manylinux_2_28_x86_64.whl",
            "url": "/f/y",
            "hashes": {"sha256": SHA},
            "size": 7,
        },
        {
            "filename": "y-2-cp312-cp312-manylinux_2_28_x86_64.whl",
            "url": "/f/y12",
            "hashes": {"sha256": SHA},
        },
    ]
}


class Handler(BaseHTTPRequestHandler):
    """Three projects: HTML, JSON, and a broken one; a file of seven bytes."""

    seen: list[tuple[str, str]]

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_HEAD(self) -> None:
        self.answer(200, "application/octet-stream", b"seven b")

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization", "")))
        if self.path == "/simple/x/":
            self.answer(200, "text/html", HTML.encode())
        elif self.path == "/simple/y/":
            self.answer(200, "application/vnd.pypi.simple.v1+json", json.dumps(JSON).encode())
        else:
            self.answer(500 if self.path == "/simple/broken/" else 404, "text/plain", b"")

    def answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    handler = type("Fresh", (Handler,), {"seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.handler = handler  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def index_of(server: ThreadingHTTPServer, user: str = "") -> Index:
    return Index(PipConfig(f"http://{user}127.0.0.1:{server.server_port}/simple", {}))


def test_html_pages(server: ThreadingHTTPServer) -> None:
    """Links become files with absolute addresses and digests; the size is requested from the file's
    server.
    """
    index = index_of(server)
    found = index.files("X")
    assert set(found) == {"x-1-py3-none-any.whl", "x-1.tar.gz"}
    wheel = found["x-1-py3-none-any.whl"]
    assert (wheel.sha256, wheel.size, wheel.yanked) == (SHA, None, False)
    assert wheel.url.endswith("/f/x-1-py3-none-any.whl")
    assert found["x-1.tar.gz"].yanked
    assert index.file_size(wheel) == 7
    assert served_file(index, "x", "x-1-py3-none-any.whl") == wheel


def test_json_pages(server: ThreadingHTTPServer) -> None:
    """JSON has the sizes; only wheels that the target can run count."""
    index = index_of(server)
    files = installable(index, Target("3.13", "amd64", 41), "y", "2")
    assert [(row.file, index.file_size(row)) for row in files] == [
        ("y-2-cp313-cp313-manylinux_2_28_x86_64.whl", 7)
    ]
    assert installable(index, Target("3.13", "amd64", 27), "y", "2") == []
    assert installable(index, Target("3.13", "arm64", 41), "y", "2") == []


def test_pages_are_asked_once(server: ThreadingHTTPServer) -> None:
    """A project is requested once; one that the index does not have is empty."""
    index = index_of(server)
    assert [index.files(name) for name in ("absent", "absent")] == [{}, {}]
    assert len(server.handler.seen) == 1  # type: ignore[attr-defined]


def test_credentials_go_to_their_host(server: ThreadingHTTPServer) -> None:
    """User and password of the index address are sent as a header and are not part of a file's
    address.
    """
    index = index_of(server, user="me:p%40ss@")
    (_, authorization), found = (index.files("x"), server.handler.seen[0])[1], index.files("x")  # type: ignore[attr-defined]
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me:p@ss"
    assert all("ss" not in row.url.partition("/f/")[0] for row in found.values())
    assert split_credentials("http://h.example.invalid/simple") == (
        "http://h.example.invalid/simple",
        {},
    )


def test_failures_are_told_apart(server: ThreadingHTTPServer) -> None:
    """A status of 500 and an unreachable server are different errors. Neither message names the
    host.
    """
    with pytest.raises(FetchError, match="the server responded with 500") as caught:
        index_of(server).files("broken")
    assert not isinstance(caught.value, NoNetworkError)
    with pytest.raises(NoNetworkError) as gone:
        Index(PipConfig("http://127.0.0.1:9/simple", {})).files("x")
    assert "127.0.0.1" not in gone.value.message
    assert display_name("http://u:p@h.example.invalid/a/b%2B1.whl") == "b+1.whl"


def test_pip_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command's section overrides the global one, the environment both; extra indexes and
    find-links directories are ignored.
    """
    listed = (
        ":env:.index-url='http://env.example.invalid'\nglobal.index-url='http://global.example.invalid'\n"
        "global.extra-index-url='http://extra.example.invalid'\nglobal.find-links='/wheels'\n"
        "global.proxy='http://p.example.invalid'\ninstall.proxy='http://q.example.invalid'\nlist.timeout='1'\n"
    )
    found = _settings(listed)
    assert found == {"index-url": "http://env.example.invalid", "proxy": "http://q.example.invalid"}
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    made = PipConfig("u", found).environment
    assert made["PIP_INDEX_URL"] == "http://env.example.invalid"
    assert (made["PIP_CONFIG_FILE"], made["PIP_FIND_LINKS"]) == ("/dev/null", "")
