"""A session in a real Chromium: what a page of the box can do, and what a page of another port of the same host can,
which gets the same cookies."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from browser import Page, browser
from support.api_box import TOKEN, ApiBox

from agentbox.client import BoxClient
from agentbox.contracts.routes.registry import ROUTES


@pytest.fixture(scope="module")
def box(prefix: Any) -> Iterator[ApiBox]:
    """A box without agents: a session needs none."""
    with ApiBox(prefix, orchestrator=False) as running:
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


class _Empty(BaseHTTPRequestHandler):
    """A page without anything, as another program of the host may serve it."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>other</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def other_port() -> Iterator[str]:
    """The URL of a page on another port of the same address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def fetched(page: Page, url: str, **options: Any) -> int:
    """The status that a script of the page gets; 0 if it gets none."""
    script = f"fetch({json.dumps(url)}, {json.dumps(options)}).then(a => a.status, () => 0)"
    return int(page.find(script))


def sign_in(page: Page, box: ApiBox) -> None:
    """The key goes to sessionStorage, as a page of the box does it."""
    page.go(f"{box.url}/ui/review")
    body = json.dumps({"token": TOKEN})
    options = {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}}
    page.find(
        f"fetch('/v1/session', {json.dumps(options)}).then(a => a.json())"
        ".then(a => sessionStorage.setItem('key', a.key))"
    )


def with_key(page: Page, url: str) -> int:
    """The status with the key that the page has."""
    return int(
        page.find(
            f"fetch({json.dumps(url)}, {{headers: {{'Agentbox-Session-Key': sessionStorage.getItem('key')}}}})"
            ".then(a => a.status, () => 0)"
        )
    )


def counts(box: ApiBox) -> dict[tuple[str, str, str], int]:
    """Answers by route, method and status, as the metrics have them."""
    rows = {}
    for line in httpx.get(f"{box.metrics_url}/metrics").text.splitlines():
        if line.startswith("http_requests_total{"):
            labels = line.split('"')
            named = {labels[at].strip("{, =").split("{")[-1]: labels[at + 1] for at in (0, 2, 4)}
            key = named["route"], named["method"], named["status"]
            rows[key] = int(float(line.split()[-1]))
    return rows


def test_a_page_of_the_box_has_both_halves(page: Page, box: ApiBox) -> None:
    """No script reads the cookie; without the key it is worth nothing."""
    sign_in(page, box)
    assert page.find("document.cookie") == ""
    assert with_key(page, "/v1/beads") == 200
    assert fetched(page, "/v1/beads") == 401
    assert fetched(page, "/v1/users", headers={"Agentbox-Session-Key": "guessed"}) == 401


def test_a_page_of_another_port_gets_nowhere(
    page: Page, box: ApiBox, client: BoxClient, other_port: str
) -> None:
    """Its requests have the cookie. Those that a browser sends without asking get 403 from each route; for the others
    it asks, and gets no permission. The key is not there."""
    sign_in(page, box)
    page.go(other_port)
    assert page.find("sessionStorage.getItem('key')") is None
    before = counts(box)
    sent: set[tuple[str, str]] = set()
    for route in ROUTES:
        if route.is_public or route.listener != "api":
            continue
        url = box.url + route.url(dict.fromkeys(route.parameters, "x"))
        method = "GET" if route.method in ("GET", "OPTIONS") else "POST"
        assert fetched(page, url, method=method, mode="no-cors", credentials="include") == 0
        if method == route.method:
            sent.add((route.template, method))
        assert with_key(page, url) == 0
        asked = fetched(page, url, method=route.method, credentials="include", headers={"X": "1"})
        assert asked == 0
    after = counts(box)
    grown = {key for key, number in after.items() if number > before.get(key, 0)}
    for template, method in sent:
        statuses = {key[2] for key in grown if key[:2] == (template, method)}
        assert statuses == {"403"}, (template, method, statuses)
    refused = client.call("read_events", query={"limit": 1000, "types": "operator.refused"})[
        "events"
    ]
    assert {event["data"]["outcome"] for event in refused} == {"cross-site"}  # so they had it


def test_another_port_signs_nobody_in(page: Page, box: ApiBox, other_port: str) -> None:
    """Neither with a script nor with a form: nobody becomes somebody else unawares."""
    page.go(other_port)
    body = json.dumps({"token": TOKEN})
    before = counts(box)
    for kind in ("text/plain", "application/json"):
        headers = {"Content-Type": kind}
        fetched(
            page, f"{box.url}/v1/session", method="POST", mode="no-cors", body=body, headers=headers
        )
        fetched(page, f"{box.url}/v1/session", method="POST", body=body, headers=headers)
    grown = {key for key, number in counts(box).items() if number > before.get(key, 0)}
    assert not [key for key in grown if key[0] == "/v1/session" and key[2] == "201"]
