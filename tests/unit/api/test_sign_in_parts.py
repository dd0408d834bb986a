"""The parts of a sign-in: codes, attempts, cookies and origins, calls that end, the bound of events."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.browser_rules import BrowserRules
from agentbox.api.auth.login_attempts import LoginAttempts
from agentbox.api.auth.login_codes import MAX_CODES, LoginCodes, Subject, name_in
from agentbox.api.auth.open_calls import OpenCalls
from agentbox.api.auth.operator_journal import OperatorJournal
from agentbox.api.metrics.operator_metrics import OperatorMetrics
from agentbox.core.slot_errors import CrossSite, RateLimited


class Clock:
    """A time that stands still."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        """The same as a number."""
        return self.at.timestamp()

    def move(self, seconds: float) -> None:
        """Later by so much."""
        self.at += timedelta(seconds=seconds)


def test_a_code_ends_by_time_and_by_use() -> None:
    """To the second; another's stays."""
    clock = Clock()
    codes = LoginCodes(clock)
    ann, bob = Subject(user="ann"), Subject(user="bob")
    code, expires_at = codes.make(ann, "ann", 900)
    assert expires_at == clock() + timedelta(seconds=900)
    assert name_in(code) == "ann"
    other, _ = codes.make(bob, "bob", 901)
    clock.move(900)
    assert codes.take(code) is None
    assert (codes.take(other), codes.take(other)) == (bob, None)
    again, _ = codes.make(ann, "ann", 900)
    codes.remove_user("ann")
    assert codes.take(again) is None


def test_codes_are_bounded() -> None:
    """The oldest end."""
    codes = LoginCodes()
    first, _ = codes.make(Subject(user="0"), "0", 900)
    for number in range(1, MAX_CODES + 1):
        last, _ = codes.make(Subject(user=str(number)), str(number), 900)
    assert codes.take(first) is None
    assert codes.take(last) is not None


@pytest.mark.parametrize("code", ["", "x", "~", "~x"])
def test_a_code_without_a_name_has_none(code: str) -> None:
    """It counts for its address only."""
    assert name_in(code) == ""


def test_failures_are_counted_by_address_and_by_name() -> None:
    """Five within a minute; the sixth is possible once the first is a minute old."""
    clock = Clock()
    attempts = LoginAttempts(clock.seconds)
    for number in range(5):
        attempts.check(f"10.0.0.{number}", "ann")
        attempts.failed(f"10.0.0.{number}", "ann")
        clock.move(1)
    with pytest.raises(RateLimited) as caught:
        attempts.check("10.0.0.9", "ann")
    assert caught.value.retry_after == 55
    attempts.check("10.0.0.9", "bob")
    for _ in range(5):
        attempts.failed("10.0.0.9", "")
    with pytest.raises(RateLimited):
        attempts.check("10.0.0.9", "bob")
    attempts.check("10.0.0.8", "")
    clock.move(55)
    attempts.check("10.0.0.10", "ann")


def test_what_is_counted_is_bounded() -> None:
    """A flood of addresses forgets the oldest, not the newest."""
    attempts = LoginAttempts()
    for number in range(10_000):
        attempts.failed(str(number), "")
    for _ in range(5):
        attempts.failed("mine", "")
    assert len(attempts._failures) <= 4096
    with pytest.raises(RateLimited):
        attempts.check("mine", "")


PAGE: Mapping[str, str] = {"host": "127.0.0.1:9090", "sec-fetch-site": "same-origin"}


@pytest.mark.parametrize(
    ("base", "headers", "fits"),
    [
        ("", {}, True),
        ("", {"origin": "http://127.0.0.1:9090"}, True),
        ("", {"origin": "HTTP://127.0.0.1:9090"}, True),
        ("", {"origin": "http://127.0.0.1"}, False),
        ("", {"origin": "http://127.0.0.1:9091"}, False),
        ("", {"origin": "http://127.0.0.1:9090/"}, False),
        ("", {"origin": ""}, False),
        ("", {"origin": "null"}, False),
        ("", {"origin": "http://"}, False),
        ("", {"origin": "http://", "host": ""}, True),  # refused by the check of Host before
        ("https://box.example", {"host": "box.example", "origin": "https://box.example"}, True),
        ("https://box.example", {"host": "box.example", "origin": "http://box.example"}, False),
        ("https://box.example", {"host": "Box.Example", "origin": "http://box.example"}, False),
        ("https://box.example", {"host": "box.example:1", "origin": "http://box.example:1"}, False),
        ("https://box.example", {"origin": "http://127.0.0.1:9090"}, True),
        ("https://box.example:8443", {"origin": "https://box.example"}, False),
    ],
)
def test_the_origin_is_the_box_s_own(base: str, headers: dict[str, str], fits: bool) -> None:
    """Scheme, host and port, all of them."""
    rules = BrowserRules(base)
    if fits:
        rules.check({**PAGE, **headers})
        return
    with pytest.raises(CrossSite):
        rules.check({**PAGE, **headers})


def test_cookies_are_read_by_name() -> None:
    """Eight at most; a prefix of the name is another cookie."""
    rules, secure = BrowserRules(""), BrowserRules("https://box.example")
    header = "xagentbox_session=1; agentbox_session=2;agentbox_session=3; agentbox_sessionx=4"
    assert rules.cookies({"cookie": header}) == ("2", "3")
    assert secure.cookies({"cookie": header}) == ()
    assert secure.cookies({"cookie": "__Host-agentbox_session=5"}) == ("5",)
    assert len(rules.cookies({"cookie": "agentbox_session=1;" * 100})) == 8


async def test_a_call_ends_when_its_caller_may_no_longer_make_it() -> None:
    """By a change, and before it begins; that of the first admin token is not followed."""
    present: dict[str, Caller] = {}
    calls = OpenCalls(lambda caller: present.get(caller.login_id))
    ended: list[str] = []

    async def abort() -> None:
        ended.append("aborted")

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("call")

    caller = Caller("x", frozenset({"events:read"}), login_id="1")
    present["1"] = caller
    running = asyncio.ensure_future(calls.run(caller, ("events:read",), endless(), abort))
    await asyncio.sleep(0)
    calls.check()
    await asyncio.sleep(0)
    assert not running.done()
    present["1"] = Caller("x", frozenset({"beads:read"}), login_id="1")
    calls.check()
    await asyncio.wait_for(running, 5)
    assert ended == ["call", "aborted"]
    assert calls._open == set()
    ended.clear()
    del present["1"]
    await asyncio.wait_for(calls.run(caller, (), endless(), abort), 5)
    assert ended[-1] == "aborted"
    ended.clear()
    await calls.run(Caller("operator", frozenset({"admin"})), ("admin",), asyncio.sleep(0), abort)
    assert ended == []


async def test_a_call_that_fails_fails() -> None:
    """Its error is the caller's to see."""
    caller = Caller("x", token_id="1")
    calls = OpenCalls(lambda _caller: caller)

    async def fail() -> None:
        raise RuntimeError("broken")

    async def abort() -> None:
        raise AssertionError("not aborted")

    with pytest.raises(RuntimeError, match="broken"):
        await calls.run(caller, (), fail(), abort)


class Recorded:
    """A journal that keeps what is recorded."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def record_soon(self, type: str, data: Mapping[str, Any]) -> None:
        """Keeps it."""
        self.events.append((type, data))


def test_refusals_are_bounded_and_counted() -> None:
    """The first of the next minute says how many were left out; programs' are not events."""
    clock, journal = Clock(), Recorded()
    operators = OperatorJournal(
        journal,  # type: ignore[arg-type]
        OperatorMetrics(CollectorRegistry()),
        clock.seconds,
    )
    ann = Caller("urn:agentbox:user:ann", user="ann", role="viewer")
    operators.refused(Caller("urn:agentbox:token:x", token_id="1"), "drain", "permission-denied")
    for _ in range(70):
        operators.refused(ann, "drain", "permission-denied")
    assert len(journal.events) == 60
    clock.move(60)
    operators.refused(ann, "drain", "permission-denied")
    assert journal.events[-1][1]["left_out"] == 10
