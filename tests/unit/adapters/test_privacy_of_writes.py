"""A planted finding, in any text field of any write of any slot and at any depth, never reaches the bytes of a store, a log
line, a span, an event or the text of an error. The table of methods says what the fields are: one that is added and not
tried here fails."""

import asyncio
import io
import json
import logging
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from agentbox_testkit.contracts.beads_common import LEASE
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.agent_host import AgentHostBox

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming
from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.contracts.slot_operations import METHODS
from agentbox.core import logging as log
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError, AdapterWriteRejected

PLANTED = {
    "secret": "AKIA" + "QQQQWWWWEEEERRRR", "email": "jane.roe@mail.example.org", "phone": "+49 30 901820765",
    "account_number": "DE89370400440532013000", "url": "postgres://joe:xyzzy@db.example.org/x",
}  # fmt: skip
NAMED = "correct-horse"  # a secret by the name that it is under, and by nothing else
# Numbers of JSON: one by its shape, one by its name. Both are too long to occur by chance in an id or a hash.
CARD, PIN = 4111111111111111, 735190246813
HIDDEN = {  # how a value gets past a search for it as it is written
    "password": {"x": [NAMED, {"y": PIN}]}, "env": [{"name": "DB_PASSWORD", "value": NAMED}], "argv": ["--token", NAMED],
    "card": CARD, "url": "https://x.example/?q=jane.roe%40mail.example.org", "text": '{"api_key": "correct-horse"}',
}  # fmt: skip
ALL = {
    "enabled": True,
    "mode": "rules",
    "entities": ["*"],
    "policy": dict.fromkeys(SLOTS, "strict"),
}
USES = {
    "beads": "local-sqlite",
    "pods": "local-fs",
    "memory": "local-sqlite",
    "events": "local-jsonl",
}

FILL = st.sampled_from(["", "x", "the key is ", "\n", "\u00e9 "])
TEXT = st.tuples(FILL, st.sampled_from(sorted(PLANTED)), FILL).map(
    lambda t: f"{t[0]} {PLANTED[t[1]]} {t[2]}"
)
TREES = st.recursive(
    TEXT | st.just({"db_password": NAMED, "apiKey": [NAMED]}) | st.just(HIDDEN),
    lambda inner: (
        st.lists(st.one_of(inner, st.integers(-1000, 1000), st.none()), max_size=3)
        | st.dictionaries(st.one_of(st.sampled_from(["a", "b"]), TEXT), inner, max_size=3)
    ),
    max_leaves=6,
)
FEW = settings(  # an example starts the slots, so that shrinking one would take minutes
    max_examples=15, deadline=None, phases=(Phase.generate,), suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip

# What is tried below, and the writes that carry names and numbers of our own making alone.
TRIED = {
    "beads": {"create_epic", "create_child", "release", "close_bead"}, "pods": {"write", "patch"}, "memory": {"store"},
    "events": {"append"}, "orchestrator": {"spawn", "run_once"},
}  # fmt: skip
NO_TEXT = {
    "beads": {"add_dep", "remove_dep", "claim", "claim_next", "heartbeat"}, "pods": {"delete"}, "memory": {"delete"},
    "events": {"receive"}, "orchestrator": {"signal", "revoke", "terminate", "attach"},  # received: masked at its origin, or its hash would not match
}  # fmt: skip


@pytest.mark.parametrize("slot", SLOTS)
def test_no_write_is_forgotten(slot):
    """Each write of the table is tried here, or has no text field and is in the list of those."""
    writes = {spec.name: spec for spec in METHODS[slot] if spec.kind in ("write", "socket")}
    assert set(writes) == TRIED[slot] | NO_TEXT[slot]
    assert {name for name, spec in writes.items() if spec.redact} == TRIED[slot]


class Recorder:
    """Spans as text."""

    def __init__(self):
        self.said = []

    @contextmanager
    def span(self, name, attributes):
        self.said.append((name, dict(attributes)))
        yield type("Span", (), {"set": lambda _, key, value: self.said.append((key, value))})()


@contextmanager
def logged():
    """Every log line at the lowest level, as a program of the box writes it."""
    before, root, stream = structlog.get_config(), logging.getLogger(), io.StringIO()
    kept = root.handlers[:], root.level
    log.configure("test", "trace")
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(stream), cache_logger_on_first_use=False
    )
    root.handlers = [logging.StreamHandler(stream)]
    try:
        yield stream
    finally:
        structlog.configure(**before)
        root.handlers, level = kept
        root.setLevel(level)


def bytes_below(prefix):
    """Everything that the stores save."""
    return b"".join(path.read_bytes() for path in sorted(Path(prefix).rglob("*")) if path.is_file())


def findings(text):
    """The planted values that a text contains; of an e-mail address with spaces or digits, the
    parts too."""
    values = (*PLANTED.values(), NAMED, str(CARD), str(PIN), "jane.roe%40", "jane.roe\\u0040")
    return [value for value in values if value in text]


def left_by(box_type, work, **uses):
    """Runs a piece of work; the bytes, log lines, spans and error texts that it leaves."""
    recorder, errors = Recorder(), []

    async def run(prefix):
        box = box_type(Path(prefix))
        async with box.started(
            {**USES, **uses}, privacy=ALL, spans=recorder, timing=LifecycleTiming()
        ) as container:
            await work(container, errors)

    with tempfile.TemporaryDirectory(dir="/var/tmp") as prefix, logged() as lines:
        asyncio.run(run(prefix))
        return bytes_below(prefix).decode("utf-8", "replace"), lines.getvalue() + repr(
            recorder.said
        ) + "".join(errors)


async def refused(errors, call):
    """An error's complete text: message, hint, members."""
    with pytest.raises(AdapterError) as caught:
        await call
    error = caught.value
    errors.append(f"{error!r} {error} {error.hint} {error.members} {error.__cause__}")
    return error


@FEW
@given(text=TEXT, more=TEXT, tree=TREES)
def test_every_write_of_every_slot(box, text, more, tree):
    """beads, pods, memory and events by their local classes; calls that fail after the filter too."""

    async def work(container, errors):
        beads, pods, memory = container.beads, container.pods, container.memory
        spec = BeadSpec(title=text, creator="c", body=more, tags=("t",), data={"tree": tree})
        epic, _ = await beads.create_epic(spec)
        child, _ = await beads.create_child(epic.id, spec)
        await beads.claim(child.id, "w", lease_id=LEASE)
        await beads.release(child.id, LEASE, note=text)
        closed = await beads.close_bead(child.id, note=more, result=tree)
        await refused(errors, beads.create_child("nobody", spec))
        await refused(errors, beads.close_bead("nobody", note=text, result=tree))
        document = json.dumps({"a": tree}, ensure_ascii=False).encode()
        await pods.write("a.json", document, content_type="application/json")
        await pods.write(
            "escaped.json",
            json.dumps({"a": [tree, PLANTED["email"]]}).replace("@", "\\u0040").encode(),
        )
        await pods.write("pieces.json", pieces(json.dumps({"a": HIDDEN})))
        await pods.write("a.ttl", f'<a> <b> """{text}""" .'.encode(), content_type="text/turtle")
        await pods.write("flow", pieces(f"{text} {more}"), content_type="text/plain")
        await pods.patch(
            "a.json", json.dumps([{"op": "add", "path": "/b", "value": tree}]).encode()
        )
        await pods.patch(
            "a.json", json.dumps([{"op": "add", "path": "/password", "value": NAMED}]).encode()
        )
        await refused(
            errors,
            pods.patch("none", json.dumps([{"op": "add", "path": "/b", "value": tree}]).encode()),
        )
        await memory.store("k", tree, text=text, metadata={"m": more})
        await memory.search(text)
        await container.events.append([NewEvent(type="a", data={"tree": tree}, subject=text)] * 2)
        await refused(
            errors,
            container.events.append(
                [NewEvent(type="Not Dotted", data={"tree": tree}, subject=text)]
            ),
        )
        assert "[" in closed.note
        assert findings(repr((await beads.show(child.id)).to_wire())) == []

    kept, said = left_by(type(box), work)
    assert kept.count("[") > 10
    assert "agentbox.adapter.memory.store" in said
    assert findings(kept) == []
    assert findings(said) == []


async def pieces(text):
    """A body cut in the middle of a value."""
    for at in range(0, len(text.encode()), 7):
        yield text.encode()[at : at + 7]


@FEW
@given(key=st.sampled_from(sorted(PLANTED)))
def test_identifiers_are_refused(box, key):
    """strict: a bead's dedup key, an object's path, a memory's key; nothing is stored, and no
    message shows it."""
    name = PLANTED[key]

    async def work(container, errors):
        calls = (
            container.beads.create_epic(BeadSpec(title="t", creator="c", dedup_key=name)),
            container.beads.create_child("p", BeadSpec(title="t", creator="c", dedup_key=name)),
            container.pods.write(name, b"x"),
            container.pods.patch(name, b"[]"),
            container.memory.store(name, "x"),
        )
        tried = {(slot, spec.name) for slot in SLOTS for spec in METHODS[slot] if spec.identifiers}
        assert len(tried) == len(calls), f"an identifier is not tried: {tried}"
        for call in calls:
            assert isinstance(await refused(errors, call), AdapterWriteRejected)
        assert (await container.beads.list()).items == ()

    kept, said = left_by(type(box), work)
    assert findings(kept + said) == []


@settings(FEW, max_examples=5)
@given(text=TEXT, more=TEXT)
def test_what_agents_are_given(box, text, more):
    """spawn and run_once through a real agent-host: labels, and an input that is text."""

    async def work(container, errors):
        spec = AgentSpec(name="n", argv=("cat",), profile="sandboxed", labels={"l": text})
        done = await container.orchestrator.run_once(
            spec, request_id=uuid7(), stdin=more.encode(), timeout_s=20
        )
        assert b"[" in done.stdout
        assert findings(done.stdout.decode()) == []
        handle = await container.orchestrator.spawn(
            replace(spec, stdin="pipe"), request_id=uuid7(), stdin=more.encode()
        )
        async for item in container.orchestrator.stream(handle.agent_id):
            if item.kind == "stdout":
                assert findings(repr(item.to_wire())) == []
                assert b"[" in item.data
                break
        info = await container.orchestrator.get(handle.agent_id)
        assert findings(repr(info)) == []
        assert "[" in info.spec.labels["l"]
        await container.orchestrator.terminate(handle)

    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="abx-") as prefix:
        host = AgentHostBox(Path(prefix))
        host.start()
        recorder = Recorder()

        async def run():
            uses = {**USES, "orchestrator": "local-process"}
            async with type(box)(Path(prefix)).started(
                uses, privacy=ALL, spans=recorder
            ) as container:
                await work(container, [])

        try:
            asyncio.run(run())
        finally:
            host.stop()
        assert findings(bytes_below(prefix).decode("utf-8", "replace") + repr(recorder.said)) == []


async def test_findings_are_counted(box):
    """agentbox_redactions_total by slot, method and class."""
    async with box.started(privacy=ALL) as container:
        await container.beads.create_epic(
            BeadSpec(title=PLANTED["secret"], creator="c", data={"password": "x"})
        )
    assert (
        box.metric(
            "agentbox_redactions_total", slot="beads", method="create_epic", **{"class": "secret"}
        )
        == 2
    )
