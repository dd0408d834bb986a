"""The probes: bodies, headers, methods, bodies refused (RC-026)."""

import re

import pytest
from raw import ask, connect, read
from support.api_box import TOKEN, ApiBox

PROBES = ("/livez", "/ready", "/health", "/v1/meta")
SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


def places(box: ApiBox) -> list[tuple[int, str]]:
    """Port and path of each of the five GET routes."""
    return [(box.plan.api.port, path) for path in PROBES] + [
        (box.plan.observability.metrics_port, "/metrics")
    ]


def test_livez_is_exact(box: ApiBox) -> None:
    """Two members, seconds with milliseconds."""
    answer = ask(box.plan.api.port, "GET /livez HTTP/1.1")
    assert answer.status == 200
    assert re.fullmatch(rb'\{"live":true,"uptime":\d+\.\d{1,3}\}', answer.body)


def test_unready_names_what_is_missing(box: ApiBox) -> None:
    """503 with Retry-After and the exact strings; no boot ran here, so nothing is sealed."""
    answer = ask(box.plan.api.port, "GET /ready HTTP/1.1")
    body = answer.json()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert list(body) == [
        "ready",
        "reason",
        "missing",
        "degraded",
        "boot_id",
        "plan_digest",
        "checked_at",
    ]
    assert body["missing"][0] == "bootstrap.done sentinel"
    count = len(body["missing"])
    assert body["reason"] == f"{count} requirement{'' if count == 1 else 's'} not met"
    assert body["plan_digest"] == box.plan.digest


def test_health_has_every_member(box: ApiBox) -> None:
    """All of them, in order."""
    body = ask(box.plan.api.port, "GET /health HTTP/1.1").json()
    assert list(body) == [
        "status", "uptime", "version", "image", "adapters", "degraded_count", "mesh", "programs", "artifacts",
        "posture", "protections_absent", "dev", "note",
    ]  # fmt: skip
    assert set(body["adapters"]) == {"beads", "pods", "memory", "events", "orchestrator"}
    assert {"state", "impl", "required", "since", "detail"} == set(body["adapters"]["beads"])
    assert body["note"] == "for people; probes use /ready"


def test_meta_has_every_member(box: ApiBox) -> None:
    """Every member, and digests that are the plan's."""
    body = ask(box.plan.api.port, "GET /v1/meta HTTP/1.1").json()
    assert list(body) == [
        "name", "version", "image", "manifest_digest", "plan_digest", "lock_digest", "system", "mesh", "adapters",
        "observability", "security", "boot", "api_versions",
    ]  # fmt: skip
    assert list(body["image"]) == ["ref", "digest", "revision", "closure_digest"]
    assert list(body["observability"]) == ["metrics_endpoint", "metrics_port", "otlp", "log_level"]
    assert list(body["boot"]) == ["id", "sealed_at", "elapsed_seconds", "previous_shutdown"]
    assert body["observability"]["metrics_port"] == box.plan.observability.metrics_port
    assert body["plan_digest"] == box.plan.digest


def test_headers_of_the_five(box: ApiBox) -> None:
    """The fixed headers and a request id are present; no server name and no CORS."""
    for port, path in places(box):
        headers = ask(port, f"GET {path} HTTP/1.1").headers
        assert {name: headers.get(name) for name in SAFE} == SAFE, path
        assert headers["x-request-id"]
        assert "server" not in headers
        assert not any(name.startswith("access-control") for name in headers)


def test_a_query_string_changes_nothing(box: ApiBox) -> None:
    """Probers add what they like."""
    for port, path in places(box):
        plain, odd = ask(port, f"GET {path} HTTP/1.1"), ask(port, f"GET {path}?a=1&b=%00 HTTP/1.1")
        assert plain.status == odd.status


@pytest.mark.parametrize(
    "host", ["10.1.2.3:9090", "[fd00::1]", "localhost", "BOX:9091", "127.0.0.1"]
)
def test_probes_are_served_under_addresses_and_names_of_the_box(box: ApiBox, host: str) -> None:
    """A kubelet uses the address, a scraper the container's name; the port does not matter."""
    assert box.plan.name == "test"
    for port, path in places(box):
        assert ask(port, f"GET {path} HTTP/1.1\nHost: {host.replace('BOX', 'Test')}").status in (
            200,
            503,
        )


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.org",
        "test.evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:9090",
    ],
)
def test_probes_tell_nothing_under_another_name(box: ApiBox, host: str) -> None:
    """421: a page in a browser that reached this port by DNS rebinding can read neither state nor
    metrics, only liveness."""
    for port, path in places(box):
        answer = ask(port, f"GET {path} HTTP/1.1\nHost: {host}")
        assert answer.status == (200 if path == "/livez" else 421), path


def test_a_probe_without_a_host_is_served(box: ApiBox) -> None:
    """As HTTP/1.0 checkers send it; a browser cannot omit it."""
    with connect(box.plan.api.port) as sock:
        sock.sendall(b"GET /ready HTTP/1.0\r\n\r\n")
        assert read(sock).status in (200, 503)


def test_head_has_no_body(box: ApiBox) -> None:
    """HEAD answers as GET does, without the body."""
    for port, path in places(box):
        answer = ask(port, f"HEAD {path} HTTP/1.1\nConnection: close")
        assert answer.status == ask(port, f"GET {path} HTTP/1.1").status
        assert int(answer.headers["content-length"]) > 0
        assert answer.body == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(box: ApiBox, method: str) -> None:
    """405 with Allow, as a problem."""
    for port, path in places(box):
        answer = ask(port, f"{method} {path} HTTP/1.1")
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        assert answer.json()["code"] == "method-not-allowed"


def test_a_body_is_refused(box: ApiBox) -> None:
    """413, with a length or chunked; the connection is closed, so the body is never read."""
    for port, path in places(box):
        for announced in ("Content-Length: 3", "Transfer-Encoding: chunked"):
            answer = ask(port, f"GET {path} HTTP/1.1\n{announced}")
            assert answer.status == 413, path
            assert answer.headers["connection"] == "close"


def test_probes_show_no_credential_and_no_host_path(box: ApiBox) -> None:
    """Neither the token nor a path outside the box is in any body or header."""
    for port, path in places(box):
        answer = ask(port, f"GET {path} HTTP/1.1\nAuthorization: Bearer {TOKEN}")
        shown = answer.body.decode() + str(answer.headers)
        assert TOKEN not in shown
        assert str(box.paths.prefix) not in shown


def test_the_metrics_port_has_nothing_else(box: ApiBox) -> None:
    """Every other path is 404 on this port, and /metrics is 404 on the API port."""
    port = box.plan.observability.metrics_port
    for path in ("/", "/livez", "/ready", "/v1/beads"):
        assert ask(port, f"GET {path} HTTP/1.1\nHost: 127.0.0.1").status == 404
    assert ask(box.plan.api.port, "GET /metrics HTTP/1.1").status == 404
