"""Records on the wire."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.adapters.runtime.adapter import Page
from agentbox.contracts import beads, events, memory, orchestrator, pods
from agentbox.core.records.schema import Schemas
from agentbox.core.records.wire import EMPTY, from_wire, to_json, to_wire
from agentbox.core.slot_errors import ValidationError

CONTRACTS = {
    "beads": beads,
    "events": events,
    "memory": memory,
    "orchestrator": orchestrator,
    "pods": pods,
}
TIMES = st.datetimes(
    min_value=datetime(1970, 1, 2), max_value=datetime(2999, 1, 1), timezones=st.just(UTC)
).map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))


def pointer(error: ValidationError) -> str:
    return error.members["errors"][0]["pointer"]


@given(
    cursor=st.integers(0),
    ts=TIMES,
    data=st.binary(),
    kind=st.sampled_from(["stdout", "stderr", "state", "exit"]),
)
def test_times_and_bytes_survive(cursor, ts, data, kind):
    """Times as RFC 3339 with milliseconds and Z, bytes as base64."""
    item = orchestrator.StreamItem(cursor=cursor, ts=ts, generation=1, kind=kind, data=data)
    wire = item.to_wire()
    assert wire["ts"].endswith("Z")
    assert orchestrator.StreamItem.from_wire(wire) == item


def test_records_nest():
    """A page of agents, each with a spec that has limits."""
    spec = orchestrator.AgentSpec(
        name="n", argv=("a",), profile="p", limits=orchestrator.Limits(memory=1, cpu=0.5)
    )
    info = orchestrator.AgentInfo(
        handle=orchestrator.AgentHandle(agent_id="x", generation=2), spec=spec, state="running", pid=None,
        started_at=None, restarts=0, exit=None, isolation={"a": [1]},
    )  # fmt: skip
    page = Page(items=(info,), next_cursor=None)
    assert from_wire(Page[orchestrator.AgentInfo], page.to_wire()) == page


def test_json_says_what_the_wire_form_says():
    """Whatever contains the value: records in tuples and mappings, times, bytes, an event without
    its origin."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    item = orchestrator.StreamItem(cursor=1, ts=at, generation=1, kind="stdout", data=b"\xff")
    event = events.Event(
        seq=1, id="i", ts=at, type="a.b", source="s", subject=None, agent_id=None, session_id=None, trace_id=None,
        data={"a": (1, None)}, prev_hash="0", hash="1",
    )  # fmt: skip
    for value in (
        item,
        event,
        Page(items=(item,)),
        {"x": [item], "y": EMPTY, "z": "\u00e4"},
        (at, b"b", 1.5, True),
    ):
        assert json.loads(to_json(value)) == to_wire(value)
        assert json.loads(to_json(value, ensure_ascii=True).encode("ascii")) == to_wire(value)
    assert "origin" not in json.loads(to_json(event))
    with pytest.raises(TypeError, match="set has no wire form"):
        to_json({"x": {1}})


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"argv": ["a", 1]}, "/argv/1"),
        ({"argv": "ls"}, "/argv"),
        ({"nme": "x"}, "/nme"),
        ({"stdin": "tty"}, "/stdin"),
        ({"limits": {"memory": "2GiB"}}, "/limits/memory"),
        ({"limits": {"memory": True}}, "/limits/memory"),
        ({"env": {"A/B": 1}}, "/env/A~1B"),
        ({"parent_id": 3}, "/parent_id"),
    ],
)
def test_what_does_not_fit_is_named(change, where):
    """By JSON pointer, before anything is built."""
    with pytest.raises(ValidationError) as caught:
        orchestrator.AgentSpec.from_wire({"name": "n", "argv": ["a"], "profile": "p", **change})
    assert pointer(caught.value) == where


def test_a_missing_member_is_named():
    """The one without a default."""
    with pytest.raises(ValidationError) as caught:
        orchestrator.AgentSpec.from_wire({"argv": ["a"], "profile": "p"})
    assert pointer(caught.value) == "/name"


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00:00", "yesterday", 5])
def test_times_need_an_offset(text):
    """Naive times and other text are refused."""
    with pytest.raises(ValidationError):
        beads.BeadSpec.from_wire({"title": "t", "creator": "c", "not_before": text})


@pytest.mark.parametrize(
    ("contract", "name"),
    [(c, name) for c in CONTRACTS.values() for name in c.RECORDS],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_each_record_has_a_schema(contract, name):
    """An object schema that allows the members of the record and nothing else."""
    import jsonschema

    schemas = Schemas()
    assert schemas.schema_of(contract.RECORDS[name]) == {"$ref": f"#/components/schemas/{name}"}
    schema = schemas.components[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["properties"]


def test_schemas_accept_what_records_give():
    """The wire form of a record validates against its schema, a changed one does not."""
    import jsonschema

    event = events.Event(
        seq=1, id="i", ts=datetime(2026, 1, 1, tzinfo=UTC), type="a.b", source="s", subject=None, agent_id=None,
        session_id=None, trace_id=None, data={"a": [1]}, prev_hash="0", hash="1",
    )  # fmt: skip
    schemas = Schemas()
    validator = jsonschema.Draft202012Validator(
        {**schemas.schema_of(events.Event), "components": {"schemas": schemas.components}}
    )
    validator.validate(event.to_wire())
    assert list(validator.iter_errors({**event.to_wire(), "seq": "1"}))
    assert list(validator.iter_errors({**event.to_wire(), "more": 1}))
