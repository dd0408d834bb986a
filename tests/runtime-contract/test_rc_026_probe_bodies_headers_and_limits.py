"""RC-026: the probes answer exactly what box.md 7 states: bodies, headers, methods, bodies refused, connection limits."""

import contextlib
import re
import socket

import pytest
from harness.box import API_PORT, METRICS_PORT, NAME, Box

SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
PLACES = [
    ("/livez", API_PORT),
    ("/ready", API_PORT),
    ("/health", API_PORT),
    ("/v1/meta", API_PORT),
    ("/metrics", METRICS_PORT),
]
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
UUID7 = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
OK, OFF = {"state": "ok", "required": False}, {"state": "off", "impl": "off", "required": False}


def test_rc_026_livez(running: Box) -> None:
    """Two members and no other."""
    body = running.get("/livez").json
    assert set(body) == {"live", "uptime"}
    assert body["live"] is True
    assert body["uptime"] > 0


def test_rc_026_ready(running: Box) -> None:
    """The whole body of a ready answer; what changes from boot to boot is checked by form."""
    body = running.get("/ready").json
    for name, form in (("since", TIME), ("checked_at", TIME), ("boot_id", UUID7), ("plan_digest", DIGEST)):
        assert form.match(body.pop(name)), name
    assert DIGEST.match(body["evidence"].pop("sentinel_sha256"))
    assert body == {
        "ready": True,
        "requirements": ["bootstrap.done", "adapters:healthy", "paths:accessible"],
        "degraded": [],
        "evidence": {},
    }


def test_rc_026_health(running: Box) -> None:
    """The whole body for a box in order."""
    body = running.get("/health").json
    assert body.pop("uptime") > 0
    assert set(body.pop("image")) == {"ref", "digest", "revision", "closure_digest"}
    assert re.match(r"^\d+\.\d+\.\d+", body.pop("version"))
    body.pop("protections_absent")  # RC-034
    for slot in body["adapters"].values():
        assert TIME.match(slot.pop("since"))
    assert body == {
        "status": "ok",
        "adapters": {
            "beads": {**OK, "impl": "local-sqlite"},
            "pods": OFF,
            "memory": OFF,
            "events": {**OK, "impl": "local-jsonl"},
            "orchestrator": {"state": "ok", "impl": "local-process", "required": True},
        },
        "degraded_count": 0,
        "mesh": {"state": "off"},
        "programs": {
            "bootstrap": "EXITED", "bootstrap-seal": "EXITED", "management-api": "RUNNING", "agent-host": "RUNNING",
        },
        "artifacts": {"failed": []},
        "posture": {"drift": []},
        "dev": False,
        "note": "for people; probes use /ready",
    }  # fmt: skip


def test_rc_026_meta(running: Box) -> None:
    """Members, and the values that the manifest decides."""
    body = running.get("/v1/meta").json
    assert list(body) == [
        "name", "version", "image", "manifest_digest", "plan_digest", "lock_digest", "system", "mesh", "adapters",
        "observability", "security", "boot", "api_versions",
    ]  # fmt: skip
    assert (body["name"], body["mesh"], body["api_versions"]) == (NAME, {"mode": "standalone"}, ["v1"])
    assert body["observability"] == {
        "metrics_endpoint": f":{METRICS_PORT}/metrics", "metrics_port": METRICS_PORT, "otlp": False, "log_level": "info",
    }  # fmt: skip
    assert body["boot"]["elapsed_seconds"] > 0


@pytest.mark.parametrize(("path", "port"), PLACES)
def test_rc_026_headers(running: Box, path: str, port: int) -> None:
    """The fixed headers on each of the five; no server name, no CORS; a query string changes nothing."""
    for query in ("", "?x=1"):
        answer = running.get(path + query, port=port)
        assert answer.status == 200
        assert {name: answer.headers.get(name) for name in SAFE} == SAFE
        assert "server" not in answer.headers
        assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(("path", "port"), PLACES)
def test_rc_026_methods_and_bodies(running: Box, path: str, port: int) -> None:
    """HEAD answers without a body; other methods are 405 with Allow; a body is 413."""
    head = running.get(path, method="HEAD", port=port)
    assert (head.status, head.body) == (200, b"")
    for method in ("POST", "PUT", "DELETE"):
        refused = running.get(path, method=method, port=port)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    assert running.get(path, body=b"x", port=port).status == 413


def test_rc_026_a_large_head_is_refused(running: Box) -> None:
    """16 KiB are read, more is 431."""
    assert running.get("/livez", headers={"X-Fill": "a" * 15_000}).status == 200
    assert running.get("/livez", headers={"X-Fill": "a" * 17_000}).status == 431


def test_rc_026_another_host_is_misdirected(running: Box) -> None:
    """Probes serve any Host; another route only loopback names and the configured address."""
    foreign = {"Host": "box.example.org"}
    assert running.get("/ready", headers=foreign).status == 200
    assert running.get("/v1/beads", headers=foreign, token=running.token()).status == 421
    assert running.get("/v1/beads", token=running.token()).status == 200


def test_rc_026_connections_are_bounded(running: Box) -> None:
    """500 open connections: a probe is still answered, another route is 503; 64 on the metrics port, then 503."""
    with contextlib.ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(socket.create_connection(("127.0.0.1", API_PORT), timeout=10))
        assert running.get("/ready").status == 200
        assert running.get("/v1/beads", token=running.token()).status == 503
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(socket.create_connection(("127.0.0.1", METRICS_PORT), timeout=10))
        assert running.get("/metrics", port=METRICS_PORT).status == 503
