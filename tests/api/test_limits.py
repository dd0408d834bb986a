"""Limits of a connection: head, idle time, number; and which Host is served."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from raw import Answer, ask, connect, read
from support.api_box import TOKEN, ApiBox

AUTH = f"Authorization: Bearer {TOKEN}"
GET = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_a_head_up_to_16_kib_is_read(box: ApiBox) -> None:
    """Just below the limit a request is served."""
    assert ask(box.plan.api.port, f"GET /livez HTTP/1.1\nX-Fill: {'a' * 15000}").status == 200


@pytest.mark.parametrize(
    "head",
    [
        f"GET /livez HTTP/1.1\nX-Fill: {'a' * 17000}",
        f"GET /{'a' * 17000} HTTP/1.1",
        "GET /livez HTTP/1.1\n" + "\n".join(f"X-{n}: {'a' * 100}" for n in range(200)),
    ],
)
def test_a_larger_head_is_refused(box: ApiBox, head: str) -> None:
    """431 for one long line, a long target, or many lines; the connection is closed."""
    answer = ask(box.plan.api.port, head)
    assert answer.status == 431
    assert answer.headers["connection"] == "close"


def test_nonsense_is_refused(box: ApiBox) -> None:
    """400 for what is no HTTP."""
    with connect(box.plan.api.port) as sock:
        sock.sendall(b"\x16\x03\x01 no http\r\n\r\n")
        assert read(sock).status == 400


def seconds_until_closed(box: ApiBox, first: bytes, drip: bytes = b"") -> float:
    """How long the server keeps a connection on which no complete request arrives."""
    began = time.monotonic()
    with connect(box.plan.api.port) as sock:
        sock.sendall(first)
        if first.endswith(b"\r\n\r\n"):
            assert read(sock).status == 200
        sock.settimeout(0.5)
        while time.monotonic() - began < 12:
            try:
                if sock.recv(1000) == b"":
                    return time.monotonic() - began
            except TimeoutError:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    sock.sendall(drip)
            except ConnectionResetError:
                return time.monotonic() - began
    raise AssertionError("never closed")


@pytest.mark.timed
def test_idle_connections_are_closed(box: ApiBox) -> None:
    """After 5 s: one that sent nothing, one that stopped within its head, one kept alive; single
    bytes do not keep a head open longer."""
    idle = [
        (b"", b""),
        (b"GET /livez HT", b""),
        (GET % b"/livez", b""),
        (b"GET /livez HTTP/1.1\r\nX: ", b"a"),
    ]
    with ThreadPoolExecutor(len(idle)) as pool:
        waits = [pool.submit(seconds_until_closed, box, first, drip) for first, drip in idle]
    assert all(4 < wait.result() < 8 for wait in waits), [wait.result() for wait in waits]


def test_connections_are_bounded_and_probes_keep_theirs(own_box) -> None:  # type: ignore[no-untyped-def]
    """With 500 connections open a probe is still answered and another route is 503; past 512 all are 503; all recover."""
    box = own_box(orchestrator=False)
    with contextlib.ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(connect(box.plan.api.port))
        assert ask(box.plan.api.port, "GET /ready HTTP/1.1").json()["ready"] is False
        refused = ask(box.plan.api.port, f"GET /v1/beads HTTP/1.1\n{AUTH}")
        assert (refused.status, refused.json()["code"]) == (503, "too-many-connections")
        for _ in range(15):
            stack.enter_context(connect(box.plan.api.port))
        assert (
            ask(box.plan.api.port, "GET /livez HTTP/1.1").json()["code"] == "too-many-connections"
        )
    assert _recovered(box)


def test_the_metrics_listener_takes_64(own_box) -> None:  # type: ignore[no-untyped-def]
    """The 65th gets 503."""
    box = own_box(orchestrator=False)
    port = box.plan.observability.metrics_port
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(connect(port))
        assert ask(port, "GET /metrics HTTP/1.1").status == 503


def _recovered(box: ApiBox) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if ask(box.plan.api.port, f"GET /v1/beads HTTP/1.1\n{AUTH}").status == 200:
            return True
    return False


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234", "[::1]:9090", "127.0.0.5"])
def test_loopback_hosts_are_served(box: ApiBox, host: str) -> None:
    """Whatever port a mapping assigns to them."""
    assert ask(box.plan.api.port, f"GET /v1/beads HTTP/1.1\nHost: {host}\n{AUTH}").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example.org", "localhost.evil.org", "10.0.0.1", "", "127.0.0.1.evil.org"]
)
def test_other_hosts_are_misdirected(box: ApiBox, host: str) -> None:
    """421 before the credential is looked at: a rebinding name cannot even guess tokens."""
    answer = ask(
        box.plan.api.port, f"GET /v1/beads HTTP/1.1\nHost: {host}\nAuthorization: Bearer x"
    )
    assert answer.status == 421


def test_a_body_over_the_cap_is_refused(box: ApiBox) -> None:
    """413 with the key that sets the limit, by announced length and by the bytes received."""
    for announced in (f"Content-Length: {2 << 20}", "Transfer-Encoding: chunked"):
        answer = _post(box, announced)
        assert (answer.status, answer.json()["config_path"]) == (413, "api.max_body")


def _post(box: ApiBox, announced: str) -> Answer:
    head = f"POST /v1/beads/epics HTTP/1.1\n{AUTH}\nContent-Type: application/json\n{announced}"
    chunk = b"%x\r\n%s\r\n" % (1 << 16, b"a" * (1 << 16))
    return ask(box.plan.api.port, head, b"" if "Length" in announced else chunk * 17)
