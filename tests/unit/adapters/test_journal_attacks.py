"""Every forgery of a journal that its own files reveal is found, at its position, by `events
verify` and by the verifier that needs no agentbox code, alike."""

import asyncio
import importlib.util
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rfc8785
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.contracts.events_received import foreign_journal
from agentbox_testkit.local_store import LocalStore
from support.journal_edits import edit_file, remove, write_lines
from support.journal_forgery import (
    ATTACKS,
    FIRST,
    FIRST_SEAL,
    ORIGINS,
    SECOND,
    SECOND_SEAL,
    THIRD,
    TRUNCATIONS,
)

from agentbox.adapters.events.journal.prune import prune
from agentbox.adapters.events.journal.verify import verify
from agentbox.contracts.events import NewEvent

ALONE = Path(__file__).resolve().parents[3] / "contrib" / "verify_journal.py"


@pytest.fixture(scope="session")
def alone():
    """The independent verifier, loaded from its file."""
    spec = importlib.util.spec_from_file_location("verify_journal", ALONE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    """A journal of three days with text, numbers and nesting of every kind."""
    prefix, clock = tmp_path_factory.mktemp("journal"), ManualClock()
    data = {
        "x": [1.5e-7, 1e21, -0.0, 2**53 - 1, None, True],
        "\U0001f600": {"\uffff": '\u2028\b\f\x7f\\"'},
        "é": [],
    }

    async def write():
        store = LocalStore("events", "local-jsonl", prefix, clock=clock)
        adapter = await store.open()
        for _ in range(3):
            await adapter.append(
                [NewEvent(type="test.thing", data={**data, "n": n}, subject="s") for n in range(40)]
            )
            clock.advance(86400)
        await store.close_all()
        return store.directory

    return asyncio.run(write())


@pytest.fixture
def journal(sound, tmp_path):
    """A copy to ruin."""
    return shutil.copytree(sound, tmp_path / "events")


def both(alone, directory, anchor=None):
    """The position that both verifiers report, None for a valid journal; they must agree."""
    ours, theirs = verify(directory, anchor=anchor).to_wire(), alone.verify(directory, anchor)
    places = [
        (e["file"], e["line"], e["seq"]) if (e := report["error"]) else None
        for report in (ours, theirs)
    ]
    assert places[0] == places[1], (ours["error"], theirs["error"])
    assert ours["ok"] == theirs["ok"] == (places[0] is None)
    if ours["ok"]:
        assert (ours["last_seq"], ours["tail_hash"]) == (theirs["last_seq"], theirs["tail_hash"])
    return places[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_is_found_at_its_place(alone, journal, name):
    """File, line and record of the first damage, by both verifiers."""
    assert both(alone, journal) is None
    attack, place = ATTACKS[name]
    attack(journal)
    assert both(alone, journal) == place


@pytest.fixture(scope="session")
def delivered(tmp_path_factory):
    """A journal of a day that has records of another box."""
    prefix = tmp_path_factory.mktemp("delivered")

    async def write():
        store = LocalStore("events", "local-jsonl", prefix, clock=ManualClock())
        adapter, sent = await store.open(), foreign_journal(9)
        await adapter.append([NewEvent(type="test.thing", data={})])
        await adapter.receive("one", sent[:5])
        await adapter.receive("one", sent[7:])
        await adapter.append(
            [NewEvent(type="test.thing", data={"origin": {"box": "one", "hash": "x"}})]
        )
        await store.close_all()
        return store.directory

    return asyncio.run(write())


@pytest.mark.parametrize("name", ORIGINS)
def test_every_forgery_of_an_origin_is_found_at_its_place(alone, delivered, tmp_path, name):
    """Though the chain is computed again after each: what a box delivered has the hashes of its own
    journal."""
    journal = shutil.copytree(delivered, tmp_path / "events")
    assert both(alone, journal) is None
    attack, place = ORIGINS[name]
    attack(journal)
    assert both(alone, journal) == place


@pytest.mark.parametrize("name", TRUNCATIONS)
def test_a_tail_that_was_cut_or_rewritten_needs_an_anchor(alone, journal, name):
    """Its own files are valid; a record known from elsewhere reveals it."""
    whole = verify(journal)
    known = (whole.last_seq, whole.tail_hash)
    assert both(alone, journal, known) is None
    TRUNCATIONS[name](journal)
    assert both(alone, journal) is None
    assert both(alone, journal, known) is not None


def test_what_is_no_damage(alone, journal):
    """A torn last line, a seal that a crash kept from being written, segments that an interrupted
    pruning left."""
    edit_file(THIRD, lambda lines: [*lines, b'{"agent_id":nu'])(journal)
    assert both(alone, journal) is None
    remove(THIRD, SECOND_SEAL)(journal)
    assert both(alone, journal) is None


async def test_pruning_that_was_cut_short_is_finished_by_the_next(alone, sound, journal):
    """The anchor exists, a segment that it left out too, or its seal is already removed: valid,
    opened, then removed."""
    prune(journal, before_seq=50)
    for names in ((FIRST, FIRST_SEAL), (FIRST,)):
        for name in names:
            shutil.copy(sound / name, journal / name)
        assert both(alone, journal) is None
        assert verify(journal).first_seq == 41
        store = LocalStore("events", "local-jsonl", journal.parent / "prefix")
        store.directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(journal, store.directory)
        assert (await (await store.open()).read(since=40)).events[0].seq == 41
        await store.close_all()
        shutil.rmtree(store.directory)
        assert prune(journal, before_seq=0) == (41, [FIRST])
        assert not (journal / FIRST).exists()


def test_any_byte(alone, journal):
    """200 random changes of bytes anywhere: found by both at one position, or the file has no
    record."""
    chance = random.Random(7)
    names = [FIRST, SECOND, THIRD, FIRST_SEAL, SECOND_SEAL]
    for _ in range(200):
        path = journal / chance.choice(names)
        kept = path.read_bytes()
        at, new = chance.randrange(len(kept)), bytes([chance.randrange(256)])
        kind = chance.choice(("change", "insert", "remove"))
        changed = (
            kept[:at]
            + (b"" if kind == "remove" else new)
            + kept[at if kind == "insert" else at + 1 :]
        )
        write_lines(journal, path.name, [changed])
        torn = path.name == THIRD and changed[: len(changed)].rfind(b"\n") < len(changed) - 1
        place = both(alone, journal)
        assert changed == kept or torn or place is not None, (path.name, at, kind)
        write_lines(journal, path.name, [kept])


def test_numbers_are_spelled_as_the_standard_says(alone):
    """The examples of RFC 8785, and 20,000 doubles at random beside a library for it."""
    chance = random.Random(8)
    fixed = [
        0.0,
        -0.0,
        5e-324,
        1e21,
        1e-7,
        1e-6,
        333333333.33333329,
        1e23,
        9007199254740991,
        4.35,
        1.7976931348623157e308,
    ]
    given = [chance.uniform(-10, 10) * 10.0 ** chance.randint(-30, 30) for _ in range(20_000)]
    for value in (*fixed, *given):
        assert alone.number(value).encode() == rfc8785.dumps(value)


def run(*words):
    return subprocess.run(
        [sys.executable, "-I", "-S", str(ALONE), *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_alone(journal):
    """Without site-packages: exit 0, 1 and 2, one sentence or JSON."""
    done = run(str(journal))
    assert (done.returncode, done.stdout[:30]) == (0, "sound: records 0 to 121, tail ")
    assert run(str(journal), "--anchor", done.stdout.split()[-1]).returncode == 0
    ATTACKS["removal"][0](journal)
    done = run(str(journal))
    assert (done.returncode, done.stdout.split(":")[:3]) == (
        1,
        ["damaged", f" {SECOND}", "6, record 46"],
    )
    assert json.loads(run(str(journal), "--json").stdout)["error"]["line"] == 6
    assert run(str(journal / "none")).returncode == 2


def test_it_is_small():
    """A file that an auditor reads before trusting it."""
    assert len(ALONE.read_text().splitlines()) < 200
