"""The clients that agents use, through a real gateway to servers on loopback."""

import asyncio
import http.server
import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.fake_authorizer import right
from support.gateway_fixture import TOKEN, GatewayFixture

from agentbox.core.paths import environment


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A directory, and the port of a server that serves it."""
    directory = tmp_path / "files"
    directory.mkdir()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(directory))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield directory, server.server_port
        server.shutdown()
        thread.join()


async def run(
    gateway: GatewayFixture, *argv: str, cwd: Path | None = None, token: str = TOKEN
) -> tuple[int, str]:
    """With the variables that an agent has, and no other proxy setting."""
    proxy = f"http://agent:{token}@127.0.0.1:{gateway.port}"
    env = {
        "PATH": environment()["PATH"], "HOME": str(gateway.config.paths.prefix), "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1",
        "PIP_CONFIG_FILE": "/dev/null", **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy),
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, output.decode()


async def test_curl(gateway: GatewayFixture, files: tuple[Path, int]) -> None:
    """Plain HTTP and TLS by CONNECT; what is refused is a status and a sentence with the rule."""
    directory, port = files
    (directory / "x").write_text("content")
    assert await run(gateway, "curl", "-fsS", f"http://127.0.0.1:{port}/x") == (0, "content")
    gateway.authorizer.set_rights("one", [])
    code, output = await run(gateway, "curl", "-sS", "-D-", f"http://127.0.0.1:{port}/x")
    assert (
        code,
        "403" in output,
        "Agentbox-Rule: net connect" in output,
        "cannot reach GET /x" in output,
    ) == (
        0,
        True,
        True,
        True,
    )
    code, output = await run(gateway, "curl", "-sS", "https://127.0.0.1:1/x")
    assert code == 56
    assert "403" in output


async def test_curl_by_tls(
    gateway: GatewayFixture, files: tuple[Path, int], tmp_path: Path
) -> None:
    """The handshake is the server's: its certificate is what curl sees."""
    directory, _ = files
    (directory / "x").write_text("content")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=a.example",
            "-addext", "subjectAltName=DNS:a.example", "-keyout", str(key), "-out", str(certificate))  # fmt: skip
    subprocess.run(made, check=True, capture_output=True)
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(directory))
    ) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        gateway.resolver.answers["a.example"] = [["127.0.0.1"]]
        output = await run(
            gateway,
            "curl",
            "-fsS",
            "--cacert",
            str(certificate),
            f"https://a.example:{server.server_port}/x",
        )
        server.shutdown()
        thread.join()
    assert output == (0, "content")


async def test_git_clones_and_fetches(
    gateway: GatewayFixture, files: tuple[Path, int], tmp_path: Path
) -> None:
    """A repository over plain HTTP; without the right, git prints the status and fails."""
    directory, port = files
    work, bare = directory / "work", directory / "it.git"
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / "file").write_text("one\n")
    for arguments in (
        ("add", "file"),
        ("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "first"),
    ):
        subprocess.run(["git", "-C", work, *arguments], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, bare], check=True)
    subprocess.run(["git", "-C", bare, "update-server-info"], check=True)
    url = f"http://127.0.0.1:{port}/it.git"
    code, output = await run(gateway, "git", "clone", "-q", url, str(tmp_path / "clone"))
    assert (code, output) == (0, "")
    assert (tmp_path / "clone/file").read_text() == "one\n"
    gateway.authorizer.set_rights("one", [right("net", "connect", "elsewhere.example:80")])
    code, output = await run(gateway, "git", "clone", "-q", url, str(tmp_path / "no"))
    assert code
    assert "403" in output


async def test_pip_installs(
    gateway: GatewayFixture, files: tuple[Path, int], tmp_path: Path
) -> None:
    """From an index of one wheel."""
    directory, port = files
    target = directory / "simple/tiny-thing"
    target.mkdir(parents=True)
    _wheel(target / "tiny_thing-1.0-py3-none-any.whl")
    (target / "index.html").write_text('<a href="tiny_thing-1.0-py3-none-any.whl">tiny</a>')
    code, output = await run(
        gateway, sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--index-url",
        f"http://127.0.0.1:{port}/simple", "--target", str(tmp_path / "into"), "tiny-thing",
    )  # fmt: skip
    assert code == 0, output
    assert (tmp_path / "into/tiny_thing.py").read_text() == "value = 42\n"


async def test_node_fetches(gateway: GatewayFixture, files: tuple[Path, int]) -> None:
    """By the proxy variables, which node uses if configured (from version 24), else by CONNECT in
    the test itself."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed here")
    directory, port = files
    (directory / "x").write_text("content")
    script = (
        "const http = require('node:http');"
        f"const head = {{'Proxy-Authorization': 'Basic ' + Buffer.from('agent:{TOKEN}').toString('base64')}};"
        f"http.request({{host: '127.0.0.1', port: {gateway.port}, method: 'CONNECT', path: '127.0.0.1:{port}', headers: head}})"
        ".on('connect', (answer, socket) => {"
        f" socket.write('GET /x HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n'); let said = ''; socket.on('data', (d) => said += d);"
        " socket.on('end', () => console.log(answer.statusCode, said.split('\\r\\n\\r\\n')[1])); }).end();"
    )
    assert await run(gateway, node, "-e", script) == (0, "200 content\n")


def _wheel(path: Path) -> None:
    """The smallest that pip accepts."""
    info = "tiny_thing-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_thing.py", "value = 42\n")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(
            f"{info}/RECORD",
            f"tiny_thing.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        )
