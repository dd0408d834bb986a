"""Searches of the journal through a real API: words, filters, pages, time lines, an index that is
made anew."""

import json
import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from commandline import agentbox
from helpers import indexed, until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.core.errors import ExitCode

LAG_SECONDS = 2.0
TRACE = "0af7651916cd43dd8448eb211c80319c"


def append(client: BoxClient, *events: dict[str, Any]) -> list[int]:
    """Their numbers, once they can be found."""
    done = client.call("append_events", body={"events": [{"data": {}, **e} for e in events]})
    began = time.monotonic()
    wait_indexed(client, done["last_seq"])
    assert time.monotonic() - began < LAG_SECONDS
    return list(range(done["first_seq"], done["last_seq"] + 1))


def wait_indexed(client: BoxClient, seq: int) -> None:
    until(lambda: indexed(client) >= seq, 10)


def found(client: BoxClient, words: str = "", **filters: Any) -> list[int]:
    return [event.seq for event in client.events.search(words=words, **filters).items]


def test_words(client: BoxClient) -> None:
    """In keys, texts, type and names; all of them; prefixes; accents and case do not matter."""
    first, second = append(
        client,
        {"type": "test.words", "data": {"Überblick": ["quick brown fox", {"n": 4711}]}},
        {"type": "test.words", "data": {"note": "a quick answer"}, "subject": "urn:x:zebra"},
    )
    for words, expected in (
        ("quick", [second, first]),
        ("QUICK uberblick", [first]),
        ("quick zebra", [second]),
        ("quic*", [second, first]),
        ("4711", [first]),
        ("urn:x:zebra", [second]),
        ("test.words quick", [second, first]),
        ("quick absent", []),
        ("qui", []),
        ('"', []), ("*", []), ("a OR quick", []), ("NEAR(quick", []), ("type:quick", []), ("(quick", [second, first]),
    ):  # fmt: skip
        assert found(client, words, types=("test.words",)) == expected, words


def test_filters(client: BoxClient) -> None:
    """By type and its prefix, agent, session, trace and its beginning, time."""
    one, two = append(
        client,
        {"type": "filter.a.x", "trace_id": TRACE, "session_id": "s-1", "agent_id": "a-1"},
        {"type": "filter.ab", "trace_id": TRACE[:8] + "f" * 24},
    )
    assert found(client, types=("filter.a.*",)) == [one]
    assert found(client, types=("filter.*",)) == [two, one]
    assert found(client, types=("filter.ab", "filter.a.x")) == [two, one]
    assert found(client, session_id="s-1") == found(client, agent_id="a-1") == [one]
    assert found(client, trace_id=TRACE) == [one]
    assert found(client, trace_id=TRACE[:8]) == [two, one]
    at = client.events.show(str(one)).ts
    assert one in found(client, since=at, types=("filter.*",))
    assert one not in found(client, until=at)
    assert found(client, since=at + timedelta(days=1)) == []
    for wrong in ({"trace_id": "abc"}, {"trace_id": "G" * 8}, {"cursor": "bm9wZQ"}, {"limit": 0}):
        with pytest.raises(ApiError) as refused:
            client.events.search(**wrong)
        assert refused.value.status == 400


def test_pages(client: BoxClient) -> None:
    """Newest first, each once, also when a page is full of bytes."""
    text = "page " + "x" * 60_000
    numbers = append(client, *[{"type": "test.pages", "data": {"t": text}}] * 12)
    for filters in ({"words": "page"}, {}):
        seen, cursor, pages = list[int](), None, 0
        while True:
            page = client.events.search(types=("test.pages",), limit=10, cursor=cursor, **filters)
            seen += [event.seq for event in page.items]
            pages, cursor = pages + 1, page.next_cursor
            if cursor is None:
                break
        assert (seen, pages) == (numbers[::-1], 2)
    assert found(client, "page", limit=500)[::-1] == numbers
    assert len(client.events.search(words="page", limit=100).items) == 12


def test_the_command(box: ApiBox, client: BoxClient) -> None:
    """Lines for people, JSON for programs; `journal` is another name; text of agents is escaped."""
    hostile = "\x1b[2J\r\n1 trusted\x9b31m"
    numbers = append(
        client,
        {"type": "test.line", "trace_id": "1" * 32, "data": {"t": hostile}, "subject": hostile},
        {"type": "test.line", "trace_id": "1" * 32, "data": {"t": "needle"}},
    )
    said = agentbox(box, "events", "search", "--type", "test.line").stdout.decode()
    assert [line.split()[0] for line in said.splitlines()] == [str(n) for n in numbers[::-1]]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    rows = json.loads(agentbox(box, "--json", "journal", "search", "needle").stdout)
    assert [row["seq"] for row in rows] == [numbers[1]]
    line = agentbox(box, "events", "trace", "1" * 8).stdout.decode().splitlines()
    assert [row.split()[2] for row in line] == [str(n) for n in numbers]
    assert line[0].lstrip().startswith("+0.000 s")
    assert agentbox(box, "events", "trace", "2" * 8).returncode == ExitCode.BAD
    counts = agentbox(box, "events", "stats").stdout.decode()
    assert re.search(r"^ +2  test\.line$", counts, re.MULTILINE)
    wrong = agentbox(box, "events", "search", "--since", "yesterday")
    assert wrong.returncode == ExitCode.USAGE


def test_an_index_is_made_anew(own_box: Callable[..., ApiBox]) -> None:
    """A file that is damaged, and one of another journal; what was there before is found again."""
    box = own_box(orchestrator=False)
    file = box.paths.slot("events") / "search.db"
    with box.client() as client:
        (seq,) = append(client, {"type": "test.anew", "data": {"t": "needle"}})
        kept = file.read_bytes()
        box.stop()
        file.write_bytes(b"no database" * 1000)
        box.start()
        wait_indexed(client, seq)
        assert found(client, "needle") == [seq]
        box.stop()
        for journal in box.paths.slot("events").glob("*"):
            journal.unlink()
        (box.paths.slot("stores") / "events.json").unlink()
        file.write_bytes(kept)
        box.start()
        (other,) = append(client, {"type": "test.other", "data": {"t": "thread"}})
        assert (found(client, "needle"), found(client, "thread")) == ([], [other])


def test_without_a_journal(own_box: Callable[..., ApiBox]) -> None:
    """The error of a slot that is off."""
    from support.api_box import SLOTS

    from agentbox.plan.model import SlotPlan

    off = SlotPlan(use="off", required=False)
    box = own_box(slots={**SLOTS, "events": off, "orchestrator": off})
    with box.client() as client:
        for call in (client.events.search, client.events.stats):
            with pytest.raises(ApiError) as refused:
                call()
            assert refused.value.code == "adapter-disabled"
    assert not box.paths.slot("events").exists()
