"""Small parts of the API, each on its own."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from agentbox.api.background.boot_events import event_type
from agentbox.api.endpoints.cloudevents import parse_events
from agentbox.api.tasks.spool import Spool, SpoolEntry
from agentbox.core.http.middleware import RequestContextMiddleware
from agentbox.core.http.problems import Unauthenticated
from agentbox.core.http.responses import problem_response
from agentbox.core.http.sse import EventStreamCut, ServerSentEvent, encode_event, write_events
from agentbox.core.http.sse_parser import SseParser
from agentbox.core.slot_errors import ERRORS, AdapterError, ValidationError


def test_event_names_become_types() -> None:
    """Dotted lower case, as the journal demands."""
    assert event_type("BootstrapStarted") == "boot.bootstrap_started"
    assert event_type("ReadinessChanged") == "boot.readiness_changed"


@pytest.mark.parametrize("kind", ERRORS.values(), ids=lambda kind: kind.code)
def test_every_error_is_a_problem(kind: type[AdapterError]) -> None:
    """Status, code, members and Retry-After follow from the class."""
    error = kind("cannot x", **dict.fromkeys(kind.names, "m"))
    response = problem_response(error, "r1")
    kind_of_body = response.headers["content-type"]
    assert (response.status_code, kind_of_body) == (kind.status, "application/problem+json")
    assert json.loads(response.body)["instance"] == "urn:agentbox:request:r1"
    assert ("Retry-After" in response.headers) == (kind.retryable and kind.status in (429, 503))


def test_a_bug_says_nothing_of_itself() -> None:
    """500 with the request id; what went wrong is in the log only, and the server gets no error."""

    async def endpoint(request: Request) -> Response:
        raise RuntimeError("secret inside")

    counted: list[int] = []
    context = Middleware(
        RequestContextMiddleware, lambda _scope, status, _seconds: counted.append(status)
    )
    client = TestClient(Starlette(routes=[Route("/", endpoint)], middleware=[context]))
    response = client.get("/", headers={"X-Request-Id": "r2"})
    assert (response.status_code, counted) == (500, [500])
    assert "secret" not in response.text
    assert response.json()["instance"].endswith("r2")


def test_unauthenticated_names_its_scheme() -> None:
    """RFC 9110: 401 carries WWW-Authenticate."""
    headers = problem_response(Unauthenticated("x", rule="y"), "").headers
    assert headers["WWW-Authenticate"] == 'Bearer realm="agentbox"'


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (3, ""),
        ({}, "/id"),
        ([{"id": "1", "source": "s", "specversion": "1.0", "type": "t"}, {"id": "1"}], "/1/source"),
        ({"id": "1", "source": "s", "specversion": "0.3", "type": "t"}, "/specversion"),
        ({"id": "1", "source": "s", "specversion": "1.0", "type": "t", "data": []}, "/data"),
    ],
)
def test_what_is_no_cloudevent_is_refused(document: Any, pointer: str) -> None:
    """With the pointer of the value."""
    with pytest.raises(ValidationError) as caught:
        parse_events(document)
    assert caught.value.members["errors"][0]["pointer"] == pointer


def test_an_event_survives_the_wire() -> None:
    """Line breaks and other scripts in data do not end an event early."""
    sent = ServerSentEvent("7", "stdout", {"text": "a\nb\r\n\n\u2028é"})
    (found,) = SseParser().feed(encode_event(sent))
    assert (found.id, found.event, json.loads(found.data)) == ("7", "stdout", sent.data)


class Wire:
    """The two ends of an ASGI connection. `stalled` makes a send wait forever."""

    def __init__(self, *, stalled: bool = False) -> None:
        self.sent: list[bytes] = []
        self.stalled = stalled
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        if self.stalled:
            await asyncio.Event().wait()
        self.sent.append(message["body"])

    async def receive(self) -> dict[str, str]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def quiet():  # type: ignore[no-untyped-def]
    """Sends one event, then nothing."""
    yield ServerSentEvent("1", "x", {})
    await asyncio.Event().wait()


async def test_comments_come_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the pace of PING_SECONDS; a reader that disconnects ends the stream."""
    monkeypatch.setattr("agentbox.core.http.sse.PING_SECONDS", 0.01)
    wire = Wire()
    writing = asyncio.ensure_future(
        write_events(quiet(), wire.send, wire.receive, asyncio.Event(), "r")
    )
    async with asyncio.timeout(30):
        while wire.sent.count(b": \n\n") < 3:
            await asyncio.sleep(0)
    wire.gone.set()
    with pytest.raises(EventStreamCut):
        await writing
    assert wire.sent[0] == b"retry: 1000\n\n"


async def test_a_stalled_reader_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """After STALL_SECONDS of blocked writes."""
    monkeypatch.setattr("agentbox.core.http.sse.STALL_SECONDS", 0.05)
    wire = Wire(stalled=True)
    with pytest.raises(EventStreamCut):
        await write_events(quiet(), wire.send, wire.receive, asyncio.Event(), "r")


async def test_a_drain_cuts_streams() -> None:
    """So that their readers resume elsewhere or later, instead of taking the end for the end."""
    wire, closing = Wire(), asyncio.Event()
    writing = asyncio.ensure_future(write_events(quiet(), wire.send, wire.receive, closing, "r"))
    closing.set()
    with pytest.raises(EventStreamCut):
        await writing


async def test_a_failing_source_tells_why() -> None:
    """An error after the first byte becomes an event `error` with the problem, and no proper end."""

    async def failing():  # type: ignore[no-untyped-def]
        yield ServerSentEvent("1", "x", {})
        raise ERRORS["cursor-expired"]("gone", oldest=3)

    wire = Wire()
    with pytest.raises(EventStreamCut):
        await write_events(failing(), wire.send, wire.receive, asyncio.Event(), "r")
    (last,) = SseParser().feed(wire.sent[-1])
    assert (last.event, json.loads(last.data)["oldest"]) == ("error", 3)


async def test_the_spool_keeps_what_it_was_given(tmp_path: Path) -> None:
    """Entries are private, survive, are listed oldest first, and a damaged one is left out."""
    spool = Spool(tmp_path / "tasks")
    spool.open()
    first, second = (
        SpoolEntry(ref=ref, spec={"argv": ["x"]}, timeout_s=1.0) for ref in ("01", "02")
    )
    await spool.save(second)
    await spool.save(first)
    (tmp_path / "tasks/03.json").write_text("{")
    (tmp_path / "tasks/04.json").write_text('{"colour": 1}')
    assert list(spool.entries()) == [first, second]
    assert (tmp_path / "tasks").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "tasks/01.json").stat().st_mode & 0o777 == 0o600
    await spool.remove("01")
    await spool.remove("01")
    assert spool.load("01") is None


@pytest.mark.parametrize("ref", ["../x", "a/b", ".hidden"])
async def test_a_ref_names_no_other_folder(tmp_path: Path, ref: str) -> None:
    """Values in a bead cannot lead out of the spool."""
    spool = Spool(tmp_path / "tasks")
    spool.open()
    (tmp_path / "x.json").write_text('{"ref": "x", "spec": {}, "timeout_s": 1}')
    assert spool.load(ref) is None
    with pytest.raises(ValueError, match="not a valid spool entry name"):
        await spool.save(SpoolEntry(ref=ref, spec={}, timeout_s=1))
