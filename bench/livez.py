"""Latency of /livez under load: 4 clients, 200 requests a second each, on kept connections.

`python bench/livez.py URL [--seconds N] [--out FILE]`. Without a URL it starts an API of its own below a folder. Each
client runs in a process of its own; latency counts from the moment a request was due, so that a server that stalls is
not spared the requests that waited. Prints one JSON document; `--out` keeps it with every raw sample.
"""

import argparse
import json
import multiprocessing
import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from multiprocessing.queues import Queue
from pathlib import Path
from urllib.parse import urlsplit

CLIENTS, RATE = 4, 200
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


def percentile(samples: list[float], share: float) -> float:
    """The sample at that share of the sorted list."""
    ordered = sorted(samples)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)


def document(samples: list[float], url: str) -> dict[str, object]:
    """What is kept of a run."""
    return {
        "what": "livez", "unit": "ms", "clients": CLIENTS, "rate_each": RATE, "n": len(samples), "warm_up": WARM_UP,
        "p50": percentile(samples, 0.50), "p95": percentile(samples, 0.95), "p99": percentile(samples, 0.99),
        "max": round(max(samples), 3), "url": url,
        "host": {"cpus": os.cpu_count(), "machine": platform.machine(), "kernel": platform.release()},
    }  # fmt: skip


def own_api(seconds: float) -> dict[str, object]:
    """Measures an API that is started for it, with beads and events open and no agents."""
    from agentbox.testing.api_box import ApiBox

    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    try:
        with ApiBox(folder, orchestrator=False) as box:
            samples = measure(box.url, seconds)
            return {**document(samples, "own"), "samples": samples}
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.url:
        samples = measure(given.url, given.seconds)
        result = {**document(samples, given.url), "samples": samples}
    else:
        result = own_api(given.seconds)
    if given.out:
        given.out.write_text(json.dumps(result))
    print(json.dumps({name: value for name, value in result.items() if name != "samples"}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
