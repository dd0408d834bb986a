"""Waiting until a box is ready, or fails."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from agentbox.host.engines.base import BoxStatus
from agentbox.host.engines.missing_reasons import explain_missing
from agentbox.host.engines.readiness import (
    boot_failure,
    events_by_boot,
    suggested_fix,
    wait_until_ready,
)
from agentbox.host.engines.state import BoxRecord

RECORD = BoxRecord(
    engine="docker", name="b", api_url="http://127.0.0.1:9"
)  # discard: nothing listens there


def line(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields})


STARTED = line("BootstrapStarted")
FAILED = line("BootstrapFailed", phase="1", reason="cannot write /workspace", fix="Make room.")


class Quiet:
    """An engine whose box prints these lines and has these states, one after another."""

    def __init__(self, lines: list[str], *states: BoxStatus) -> None:
        self.lines, self.states = lines, list(states)

    def inspect(self, record: BoxRecord) -> BoxStatus:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def logs(self, record: BoxRecord, **_ignored: object) -> Iterator[str]:
        return iter(self.lines)


def test_only_the_last_boot_counts() -> None:
    """A failed boot before a later one is ignored."""
    assert boot_failure([STARTED, FAILED]) == "boot failed in phase 1: cannot write /workspace"
    assert boot_failure([STARTED, FAILED, STARTED]) == ""
    assert boot_failure([STARTED, FAILED, STARTED], any_boot=True).startswith("boot failed")
    assert [len(boot) for boot in events_by_boot([STARTED, FAILED, "no JSON", "[]", STARTED])] == [
        1,
        2,
        0,
    ]


def test_a_seal_that_waits_in_vain_is_a_failure() -> None:
    """The error names what it waited for."""
    lines = [
        STARTED,
        line("BootstrapSealTimeout", waiting_for=["management-api"], timeout_seconds=120),
    ]
    assert boot_failure(lines) == "the seal timed out after 120 s waiting for management-api"


def test_the_remedy_of_the_boot_is_found() -> None:
    """The remedy of the last boot that named one."""
    assert suggested_fix([STARTED, FAILED, STARTED]) == "Make room."
    assert suggested_fix([STARTED]) == ""


@pytest.mark.timed
def test_a_failed_boot_ends_the_wait() -> None:
    """Long before the deadline, with its reason."""
    waited = wait_until_ready(
        Quiet([STARTED, FAILED], BoxStatus("running")), RECORD, 30, lambda *_: None
    )
    assert not waited.ready
    assert waited.exit_reason == "boot failed in phase 1: cannot write /workspace"
    assert waited.seconds < 10


def test_a_box_that_restarts_or_goes_ends_the_wait() -> None:
    """By the failed boot if there is one, else the exit code; or the box was removed."""
    restarting = Quiet([STARTED, FAILED, STARTED], BoxStatus("restarting", 1, 1))
    assert wait_until_ready(restarting, RECORD, 30, lambda *_: None).exit_reason.startswith(
        "boot failed"
    )
    assert (
        "exit code 9"
        in wait_until_ready(
            Quiet([], BoxStatus("exited", 9)), RECORD, 30, lambda *_: None
        ).exit_reason
    )
    assert (
        "removed"
        in wait_until_ready(Quiet([], BoxStatus("absent")), RECORD, 30, lambda *_: None).exit_reason
    )
    again = Quiet([STARTED], BoxStatus("running", restarts=3), BoxStatus("running", restarts=4))
    assert "restarts: 4" in wait_until_ready(again, RECORD, 30, lambda *_: None).exit_reason


def test_restarts_of_long_ago_do_not_count() -> None:
    """Only restarts since the wait began count; then the deadline ends it, with the last output."""
    shown: list[list[str]] = []
    old = Quiet([STARTED], BoxStatus("running", restarts=3))
    waited = wait_until_ready(old, RECORD, 2.5, lambda _seconds, missing: shown.append(missing))
    assert waited.exit_reason == ""
    assert shown[-1] == ["a response of the management API"]


class FullDisk(BaseHTTPRequestHandler):
    """`/ready` of a box with a full disk: first something else is missing, too."""

    missing: ClassVar = [["program:x not running", "disk full: /s"], ["disk full: /s"]]

    def do_GET(self) -> None:
        body = json.dumps({"missing": self.missing.pop(0)}).encode()
        self.send_response(503)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def test_a_full_disk_alone_ends_the_wait() -> None:
    """The wait ends if only disk space is missing; other missing things may still arrive."""
    shown: list[list[str]] = []
    with HTTPServer(("127.0.0.1", 0), FullDisk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        record = replace(RECORD, api_url=f"http://127.0.0.1:{server.server_port}")
        box = Quiet([STARTED], BoxStatus("running"))
        waited = wait_until_ready(box, record, 30, lambda _seconds, missing: shown.append(missing))
        server.shutdown()
    assert (waited.ready, waited.exit_reason, waited.verdict) == (
        False,
        "",
        {"missing": ["disk full: /s"]},
    )
    assert len(shown) == 2


def test_what_is_missing_has_a_meaning() -> None:
    """Each family of strings of `missing`."""
    for text in (
        "bootstrap.done sentinel",
        "program:x not running (state=FATAL)",
        "path not accessible: /workspace",
    ):
        assert explain_missing(text)
    assert explain_missing("something new") == ""
