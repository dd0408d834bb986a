"""Requests that no client would send: each is refused with a problem document, none causes a bug,
and the log contains none of it."""

import json

import pytest
from raw import ask
from support.api_box import TOKEN, ApiBox

MARK = "zq7marker"
AUTH = f"Authorization: Bearer {TOKEN}"
DEEP = b'{"a":' * 2000 + b"1" + b"}" * 2000
BODIES = {
    "nothing": b"", "half": b'{"title": "' + MARK.encode(), "no JSON": MARK.encode(), "array": b'["%s"]' % MARK.encode(),
    "scalar": b'"%s"' % MARK.encode(), "null": b"null", "deep": DEEP, "deeper": b"[" * 100_000, "bad UTF-8": b'{"title": "\xff%s"}' % MARK.encode(),
    "surrogate": b'{"title": "\\ud800", "value": "\\ud800", "query": "\\ud800", "events": [{"type": "x", "data": {"a": "\\ud800"}}]}',
    "NUL": b'{"title": "a\\u0000b", "value": "\\u0000", "query": "\\u0000", "events": [{"type": "x", "data": {"a": "\\u0000"}}]}',
    "NaN": b'{"title": NaN, "value": NaN, "query": NaN, "events": NaN}', "huge": b'{"title": 1' + b"0" * 5000 + b"}",
    "huge float": b'{"title": 1e999, "value": 1e999, "query": 1e999, "events": 1e999}', "UTF-16": '{"title": "x"}'.encode("utf-16"),
    "BOM": b"\xef\xbb\xbf{}", "twice": b'{"colour": 1, "colour": 2}', "wrong types": b'{"title": [{"%s": 1}], "value": {}, "limit": "x", "events": {}}' % MARK.encode(),
}  # fmt: skip
PLACES = ("POST /v1/beads/epics", "POST /v1/memory/search", "POST /v1/events", "POST /v1/agents", "POST /v1/tasks", "POST /v1/tokens",
          "POST /v1/runs", "POST /v1/beads/claims", "POST /v1/events/verify", "PUT /v1/memory/ns/n/keys/k")  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_body_that_is_none(box: ApiBox, place: str) -> None:
    """400 or 413, and never a bug; valid parts of a request are accepted."""
    for name, body in BODIES.items():
        answer = ask(
            box.plan.api.port,
            f"{place} HTTP/1.1\n{AUTH}\nContent-Type: application/json\nContent-Length: {len(body)}",
            body,
        )
        taken = place.startswith("PUT") and name == "wrong types"
        assert answer.status in ((400, 413) if not taken else (200, 201, 400)), (name, answer.body)
        _is_problem(answer.status, answer.body)
    log = box.log.read_text()
    assert MARK not in log
    assert "request failed" not in log


WRAPPED = {
    "POST /v1/events": b'{"events": [{"type": "x", "data": %s}]}', "PUT /v1/memory/ns/n/keys/k": b'{"value": %s}',
    "POST /v1/memory/search": b'{"query": "x", "filter": {"a": %s}}', "POST /v1/beads/epics": b'{"title": "x", "data": {"a": %s}}',
    "POST /v1/agents": b'{"name": "x", "argv": ["true"], "labels": {"a": %s}}', "POST /v1/tasks": b'{"argv": ["true"], "labels": {"a": %s}}',
}  # fmt: skip


@pytest.mark.parametrize("place", WRAPPED)
def test_a_value_that_is_too_deep(box: ApiBox, place: str) -> None:
    """At every depth that Python still parses, in objects and in arrays: an error of the client,
    and reported as such."""
    for depth in (70, 99, 150, 330, 500, 700, 900, 990):
        for value in (b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth + b"]" * depth):
            body = WRAPPED[place] % value
            head = f"{place} HTTP/1.1\n{AUTH}\nContent-Type: application/json\nContent-Length: {len(body)}"
            answer = ask(box.plan.api.port, head, body)
            assert answer.status == 400, (depth, answer.body[:300])
    assert "request failed" not in box.log.read_text()


HEADS = {
    "two lengths": "POST /v1/beads/epics HTTP/1.1\nContent-Length: 2\nContent-Length: 3", "two hosts": "GET /v1/beads HTTP/1.1\nHost: 127.0.0.1\nHost: evil.example",
    "two tokens": f"GET /v1/beads HTTP/1.1\n{AUTH}", "length and chunks": "POST /v1/beads/epics HTTP/1.1\nContent-Length: 2\nTransfer-Encoding: chunked",
    "a name twice": "GET /v1/beads?limit=1&limit=2 HTTP/1.1", "query of no UTF-8": "GET /v1/beads?creator=%ff HTTP/1.1", "path of no UTF-8": "GET /v1/beads/%ff HTTP/1.1",
    "a long number": f"GET /v1/beads?limit={'9' * 5000} HTTP/1.1", "digits of another script": "GET /v1/beads?limit=%D9%A3 HTTP/1.1", "since": f"GET /v1/events?since={'9' * 5000} HTTP/1.1",
    "a long seq": f"GET /v1/events/{'9' * 5000} HTTP/1.1", "a long id of a stream": f"GET /v1/events/stream HTTP/1.1\nLast-Event-ID: {'9' * 5000}",
    "NaN in a query": "GET /v1/memory/ns/n/keys?filter=%7B%22a%22%3ANaN%7D HTTP/1.1", "a deep query": f"GET /v1/memory/ns/n/keys?filter={'%5B' * 4000} HTTP/1.1",
    "a deep cursor": "GET /v1/beads?cursor=%s HTTP/1.1" % ("W1tb" * 2000), "a deep filter": f"GET /v1/memory/ns/n/keys?filter={'%7B%22a%22%3A' * 500}1{'%7D' * 500} HTTP/1.1",
    "NaN seconds": "DELETE /v1/agents/x?generation=1&grace_s=nan HTTP/1.1", "negative length": "POST /v1/beads/epics HTTP/1.1\nContent-Length: -1",
    "a bad chunk": "POST /v1/beads/epics HTTP/1.1\nContent-Type: application/json\nTransfer-Encoding: chunked\n\nzz",
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_is_none(box: ApiBox, name: str) -> None:
    """Refused in the client's range; other clients are served as well as before."""
    answer = ask(
        box.plan.api.port,
        f"{HEADS[name]}\n{AUTH}"
        if "\n\n" not in HEADS[name]
        else HEADS[name].replace("\n\n", f"\n{AUTH}\n\n"),
    )
    assert 400 <= answer.status < 500, answer
    _is_problem(answer.status, answer.body)
    assert ask(box.plan.api.port, f"GET /v1/beads HTTP/1.1\n{AUTH}").status == 200
    assert "request failed" not in box.log.read_text()


def test_a_long_range_is_ignored(box: ApiBox) -> None:
    """As a server may; a number of 5000 digits is no bug."""
    head = f"PUT /v1/pods/ranged HTTP/1.1\n{AUTH}\nContent-Length: 3"
    assert ask(box.plan.api.port, head, b"abc").status == 201
    answer = ask(
        box.plan.api.port, f"GET /v1/pods/ranged HTTP/1.1\n{AUTH}\nRange: bytes=0-{'9' * 5000}"
    )
    assert (answer.status, answer.body) == (200, b"abc")


def _is_problem(status: int, body: bytes) -> None:
    if status >= 400:
        assert json.loads(body)["status"] == status
