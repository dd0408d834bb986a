"""Watching a box become ready, or not."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from agentbox.host.engines.base import Running
from agentbox.host.engines.missing_reasons import meaning
from agentbox.host.engines.state import BoxRecord
from agentbox.host.engines.waiting import boots_of, failure, fix, wait_until_ready

RECORD = BoxRecord(engine="docker", name="b", api_url="http://127.0.0.1:9")  # discard: nothing listens there


def line(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields})


STARTED = line("BootstrapStarted")
FAILED = line("BootstrapFailed", phase="1", reason="cannot write /workspace", fix="Make room.")


class Quiet:
    """An engine whose box says these lines and is in these states, one after another."""

    def __init__(self, lines: list[str], *states: Running) -> None:
        self.lines, self.states = lines, list(states)

    def inspect(self, record: BoxRecord) -> Running:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def logs(self, record: BoxRecord, **_ignored: object) -> Iterator[str]:
        return iter(self.lines)


def test_only_the_last_boot_counts() -> None:
    """A boot that failed before another one began is past."""
    assert failure([STARTED, FAILED]) == "boot failed in phase 1: cannot write /workspace"
    assert failure([STARTED, FAILED, STARTED]) == ""
    assert failure([STARTED, FAILED, STARTED], of_any_boot=True).startswith("boot failed")
    assert [len(boot) for boot in boots_of([STARTED, FAILED, "no JSON", "[]", STARTED])] == [1, 2, 0]


def test_a_seal_that_waits_in_vain_is_a_failure() -> None:
    """With what it waited for."""
    lines = [STARTED, line("BootstrapSealTimeout", waiting_for=["management-api"], timeout_seconds=120)]
    assert failure(lines) == "the seal waited 120 s in vain for management-api"


def test_the_remedy_of_the_boot_is_found() -> None:
    """Of the last boot that named one."""
    assert fix([STARTED, FAILED, STARTED]) == "Make room."
    assert fix([STARTED]) == ""


@pytest.mark.timed
def test_a_failed_boot_ends_the_wait() -> None:
    """Long before the deadline, with its reason."""
    waited = wait_until_ready(Quiet([STARTED, FAILED], Running("running")), RECORD, 30, lambda *_: None)
    assert not waited.ready
    assert waited.ended == "boot failed in phase 1: cannot write /workspace"
    assert waited.seconds < 10


def test_a_box_that_restarts_or_goes_ends_the_wait() -> None:
    """By what is known: the boot that failed before, else the exit code; a removed one is gone."""
    restarting = Quiet([STARTED, FAILED, STARTED], Running("restarting", 1, 1))
    assert wait_until_ready(restarting, RECORD, 30, lambda *_: None).ended.startswith("boot failed")
    assert "exit code 9" in wait_until_ready(Quiet([], Running("exited", 9)), RECORD, 30, lambda *_: None).ended
    assert "removed" in wait_until_ready(Quiet([], Running("absent")), RECORD, 30, lambda *_: None).ended
    again = Quiet([STARTED], Running("running", restarts=3), Running("running", restarts=4))
    assert "restarts: 4" in wait_until_ready(again, RECORD, 30, lambda *_: None).ended


def test_restarts_of_long_ago_do_not_count() -> None:
    """Only those since the wait began; then the deadline ends it, with what was shown."""
    shown: list[list[str]] = []
    old = Quiet([STARTED], Running("running", restarts=3))
    waited = wait_until_ready(old, RECORD, 2.5, lambda _seconds, missing: shown.append(missing))
    assert waited.ended == ""
    assert shown[-1] == ["an answer of the management API"]


class FullDisk(BaseHTTPRequestHandler):
    """`/ready` of a box without room: first something else is missing, too."""

    missing: ClassVar = [["program:x not running", "disk full: /s"], ["disk full: /s"]]

    def do_GET(self) -> None:
        body = json.dumps({"missing": self.missing.pop(0)}).encode()
        self.send_response(503)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_full_disk_alone_ends_the_wait() -> None:
    """Nobody waits for room that comes from nowhere; what else is missing may come."""
    shown: list[list[str]] = []
    with HTTPServer(("127.0.0.1", 0), FullDisk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        record = replace(RECORD, api_url=f"http://127.0.0.1:{server.server_port}")
        box = Quiet([STARTED], Running("running"))
        waited = wait_until_ready(box, record, 30, lambda _seconds, missing: shown.append(missing))
        server.shutdown()
    assert (waited.ready, waited.ended, waited.verdict) == (False, "", {"missing": ["disk full: /s"]})
    assert len(shown) == 2


def test_what_is_missing_has_a_meaning() -> None:
    """Each family of strings of `missing`."""
    for text in ("bootstrap.done sentinel", "program:x not running (state=FATAL)", "path not accessible: /workspace"):
        assert meaning(text)
    assert meaning("something new") == ""
