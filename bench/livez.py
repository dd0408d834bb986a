"""Latency of /livez under load: 4 clients, 200 requests a second each, on kept connections.

`python bench/livez.py [URL] [--seconds N] [--out FILE]`. Without a URL it starts an API of its own below a folder. Each
client runs in a process of its own; latency counts from the moment a request was due, so that a server that stalls is
not spared the requests that waited. Every raw sample is kept.
"""

import argparse
import multiprocessing
import shutil
import socket
import tempfile
import time
from multiprocessing.queues import Queue
from pathlib import Path
from urllib.parse import urlsplit

from measure import Claim, run_main, write_results

from agentbox.core.errors import AgentboxError, ExitCode

CLIENTS, RATE = 4, 200
MUST_P99 = 30.0  # ms; held against p95 by `agentbox bench`, printed beside p99 here
WARM_UP = 50  # requests of each client that are not counted


def client(host: str, port: int, seconds: float, start: float, found: "Queue[list[float]]") -> None:
    """Sends on its schedule; puts milliseconds of each request, in order."""
    request = f"GET /livez HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    samples: list[float] = []
    with socket.create_connection((host, port), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(WARM_UP + int(seconds * RATE)):
            due = start + number / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            sock.sendall(request)
            while b'{"live":true' not in sock.recv(4096):
                continue
            samples.append((time.monotonic() - due) * 1000)
    found.put(samples[WARM_UP:])


def measure(url: str, seconds: float) -> list[float]:
    """Milliseconds of every request of every client."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
    except OSError as error:
        raise AgentboxError(
            f"cannot measure {url}: nothing answers there ({error.strerror or error})",
            exit_code=ExitCode.NOT_RUNNING,
        ) from None
    context = multiprocessing.get_context("spawn")
    found: Queue[list[float]] = context.Queue()
    start = time.monotonic() + 1.0
    rows = (parts.hostname, parts.port, seconds, start, found)
    running = [context.Process(target=client, args=rows) for _ in range(CLIENTS)]
    for process in running:
        process.start()
    samples = [sample for _ in running for sample in found.get(timeout=seconds + 60)]
    for process in running:
        process.join()
    return samples


def own_api(seconds: float) -> list[float]:
    """Measures an API that is started for it, with beads and events open and no agents."""
    from support.api_box import ApiBox

    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    try:
        with ApiBox(folder, orchestrator=False) as box:
            return measure(box.url, seconds)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Keeps every sample in results/livez.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--runs", type=int, help="not used: the load lasts --seconds")
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    samples = measure(given.url, given.seconds) if given.url else own_api(given.seconds)
    conditions = f"{CLIENTS} clients, {RATE} requests a second each, {given.seconds:g} s, of {given.url or 'an API of its own'}"
    write_results(
        "livez", [Claim("livez under load", "ms", samples, MUST_P99, conditions)], given.out
    )


if __name__ == "__main__":
    run_main(main)
