"""RC-026: the probe routes have exactly their bodies and headers, accept GET and HEAD without a
body, and their listeners are bounded in head size, connections and idle time. Columns D and H.
Golden bodies are in `golden/`; what differs from boot to boot is `<kind>` there."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.box import Box
from harness.outcomes import API_PORT, METRICS_PORT, Answer
from harness.waiting import wait_for

GOLDEN = Path(__file__).parent / "golden"
PORTS = {
    "/livez": API_PORT,
    "/ready": API_PORT,
    "/health": API_PORT,
    "/v1/meta": API_PORT,
    "/metrics": METRICS_PORT,
}
HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
TEXT = "text/plain; version=0.0.4; charset=utf-8"
CHANGING = {"date", "x-request-id", "content-length", "content-type"}
KINDS = {
    "<uuid>": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "<sha256>": re.compile(r"sha256:[0-9a-f]{64}"),
    "<time>": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
    "<version>": re.compile(r"\d+\.\d+\.\d+"),
    "<revision>": re.compile(r"dirty|[0-9a-f]{40}"),
}
SEMANTIC = {"contract_version"}  # looks like a version, and is one that the contract fixes


def normal(value: Any, key: str = "") -> Any:
    """The document with what differs from boot to boot replaced by its kind."""
    if isinstance(value, dict):
        return {name: normal(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [normal(each) for each in value]
    if key in ("uptime", "elapsed_seconds") and isinstance(value, float):
        return "<seconds>"
    if isinstance(value, str) and key not in SEMANTIC:
        return next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(value)), value)
    return value


def ask(box: Box, path: str, **options: Any) -> Answer:
    return box.get(path, port=PORTS[path.partition("?")[0]], **options)


def test_rc_026_bodies(running: Box) -> None:
    """The four JSON documents, key by key."""
    wait_for(
        lambda: ask(running, "/health").json["programs"]["bootstrap-seal"] == "EXITED",
        10,
        "the seal has ended",
    )
    golden = json.loads((GOLDEN / f"probes_{running.engine}.json").read_text())
    found = {path: normal(ask(running, path).json) for path in PORTS if path != "/metrics"}
    assert found == golden
    assert ask(running, "/livez").body.startswith(b'{"live":true,"uptime":')


@pytest.mark.parametrize("path", PORTS)
def test_rc_026_headers(running: Box, path: str) -> None:
    """The five safety headers, no `Server`, nothing about other origins; HEAD answers the same without a body."""
    answer, head = ask(running, path), ask(running, path, method="HEAD")
    assert {
        name: value for name, value in answer.headers.items() if name not in CHANGING
    } == HEADERS
    assert answer.headers["content-type"] == (TEXT if path == "/metrics" else "application/json")
    assert int(answer.headers["content-length"]) == len(answer.body) > 0
    assert (head.status, head.body, set(head.headers)) == (200, b"", set(answer.headers))
    assert ask(running, f"{path}?anything=goes").status == 200


@pytest.mark.parametrize("path", PORTS)
def test_rc_026_methods_bodies_and_heads(running: Box, path: str) -> None:
    """Other methods are 405 with Allow, a body is 413, a head above 16 KiB 431."""
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        refused = ask(running, path, method=method)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD"), method
        assert refused.headers["content-type"] == "application/problem+json"
    assert ask(running, path, body=b"{}").status == 413
    assert ask(running, path, headers={"X-Fill": "a" * 15000}).status == 200
    assert ask(running, path, headers={"X-Fill": "a" * 17000}).status == 431


def test_rc_026_metrics_port_has_nothing_else(running: Box) -> None:
    """404 for every other path; OpenMetrics for a scraper that requests it."""
    for path in ("/", "/livez", "/ready", "/v1/meta"):
        assert running.get(path, port=METRICS_PORT).status == 404
    accepts = {"Accept": "application/openmetrics-text; version=1.0.0"}
    open_metrics = ask(running, "/metrics", headers=accepts)
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert open_metrics.body.endswith(b"# EOF\n")


def test_rc_026_another_host_is_misdirected(running: Box) -> None:
    """`/livez` serves any Host; every other route only addresses and names of the box (DNS rebinding)."""
    foreign = {"Host": "box.example.org"}
    answers = {path: ask(running, path, headers=foreign).status for path in PORTS}
    assert answers == {path: 200 if path == "/livez" else 421 for path in PORTS}
    assert running.get("/v1/beads", headers=foreign, token=running.token()).status == 421
    assert running.get("/v1/beads", token=running.token()).status == 200


def test_rc_026_not_ready(make_box: Callable[..., Box]) -> None:
    """503 with `Retry-After: 1` and exactly its keys, of a box that drains."""
    box = make_box()
    box.start()
    box.wait_ready()
    assert box.call("POST", "/v1/drain").status == 202
    answer = box.get("/ready")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert normal(answer.json) == {
        "ready": False, "reason": "1 requirement not met", "missing": ["draining"], "degraded": [],
        "boot_id": "<uuid>", "plan_digest": "<sha256>", "checked_at": "<time>",
    }  # fmt: skip


@contextmanager
def held(port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many connections that send nothing."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            for _ in range(count)
        ]


def status(box: Box, path: str) -> int:
    """Of one request; 0 when the connection is cut instead."""
    try:
        return ask(box, path).status if path in PORTS else box.get(path).status
    except OSError:
        return 0


@pytest.mark.timed
def test_rc_026_connections(make_box: Callable[..., Box]) -> None:
    """64 on the metrics listener, 512 on the API, the last 16 of these for probes; then 503. An idle one ends after 5 s."""
    box = make_box()
    box.start()
    box.wait_ready()
    began = time.monotonic()
    with held(METRICS_PORT, 64) as idle:
        wait_for(lambda: status(box, "/metrics") == 503, 3, "the 65th is refused")
        assert status(box, "/ready") == 200
        assert idle[0].recv(1) == b""
        assert 4 < time.monotonic() - began < 8
    wait_for(lambda: status(box, "/metrics") == 200, 3, "room again")
    with held(API_PORT, 498):
        wait_for(lambda: status(box, "/v1/beads") == 503, 3, "only probes are served")
        assert status(box, "/ready") == 200
        with held(API_PORT, 16):
            wait_for(lambda: status(box, "/ready") == 503, 3, "nothing is served")
    wait_for(lambda: status(box, "/ready") == 200, 8, "room again")
