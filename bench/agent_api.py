"""A round trip of the agent API on a kept connection (`hello`), and bytes through a tunnel, each beside a bare peer."""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from measure import Claim, run_main, write_results
from support.gateway_fixture import TOKEN
from support.ports import free_port

from agentbox.client import AgentApiClient

_WARM, _CHUNK, _MIB = 200, 1 << 16, 1 << 20
_GATEWAY = """
import asyncio, pathlib, sys, uvloop
from support.gateway_fixture import GatewayFixture
from support.fake_authorizer import right
async def main():
    room = GatewayFixture(pathlib.Path(sys.argv[1]), {}, {"egress": 1 << 50})
    room.authorizer.set_rights("one", [right("tool", "call", "*"), right("net", "connect", "*:*")])
    await room.server.open()
    print(room.port, flush=True)
    await asyncio.Event().wait()
uvloop.run(main())
"""
_PEER = """
import json, sys, uvicorn
answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode()
head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(answer)).encode())]}
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send(head)
    await send({"type": "http.response.body", "body": answer})
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical", lifespan="off", access_log=False)
"""


@contextmanager
def gateway() -> Iterator[int]:
    """A real gateway in a process of its own, whose one agent has TOKEN; its port."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", _GATEWAY, folder], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
            process.wait()


@contextmanager
def bare() -> Iterator[int]:
    """uvicorn with an application that answers the same few bytes; its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", _PEER, str(port)])
    try:
        deadline = time.monotonic() + 10
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def milliseconds(call: Callable[[], object], runs: int) -> list[float]:
    """Of each call, after some that do not count."""
    samples = []
    for number in range(_WARM + runs):
        began = time.perf_counter()
        call()
        if number >= _WARM:
            samples.append((time.perf_counter() - began) * 1e3)
    return samples


def round_trips(runs: int) -> list[Claim]:
    """`hello` by the client that ships, and the same connection library against the bare server."""
    with gateway() as port, AgentApiClient(f"http://127.0.0.1:{port}", TOKEN) as agent_api:
        size = len(json.dumps(agent_api.hello()))
        ours = milliseconds(agent_api.hello, runs)
    with bare() as port:
        connection, body = (
            HTTPConnection("127.0.0.1", port),
            b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}',
        )

        def ask() -> None:
            connection.request("POST", "/rpc", body, {"Content-Type": "application/json"})
            json.loads(connection.getresponse().read())

        theirs = milliseconds(ask, runs)
        connection.close()
    return [
        Claim("agent API round trip, hello", "ms", ours, 1.0, f"kept connection, {size} bytes of answer; p50 <= 0.5 ms", peer="bare server"),
        Claim("bare server", "ms", theirs, None, "uvicorn, 44 bytes of answer, the same client library"),
    ]  # fmt: skip


def throughput(runs: int, size: int = 256 * _MIB) -> list[Claim]:
    """One direction, from a server on loopback, by CONNECT and without."""
    with gateway() as through, _source(size) as port:
        ours = [_mib_a_second(through, port, size) for _ in range(runs)]
        theirs = [_mib_a_second(0, port, size) for _ in range(runs)]
    return [
        Claim(
            "bytes through a tunnel",
            "MiB/s",
            ours,
            None,
            f"{size >> 20} MiB, one tunnel",
            peer="bytes without a proxy",
        ),
        Claim("bytes without a proxy", "MiB/s", theirs, None, f"{size >> 20} MiB, one connection"),
    ]


@contextmanager
def _source(size: int) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        block = bytes(_CHUNK)

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    for _ in range(size // _CHUNK):
                        peer.sendall(block)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def _mib_a_second(proxy: int, port: int, size: int) -> float:
    with socket.create_connection(("127.0.0.1", proxy or port)) as peer:
        if proxy:
            peer.sendall(
                f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += peer.recv(1)
            assert b" 200 " in head, head
        came, buffer, began = 0, bytearray(_MIB), time.perf_counter()
        while got := peer.recv_into(buffer):
            came += got
    assert came == size, came
    return size / _MIB / (time.perf_counter() - began)


def main() -> None:
    """No box is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1500)
    runs = parser.parse_args().runs
    write_results("agent_api", [*round_trips(runs), *throughput(max(3, runs // 300))])


if __name__ == "__main__":
    run_main(main)
