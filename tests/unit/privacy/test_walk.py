"""The walk over a call's arguments."""

from agentbox.contracts.beads import BeadSpec
from agentbox.contracts.events import NewEvent
from agentbox.policy.redaction.walk import rewrite


def upper(text, key):
    return f"{key}:{text}".upper() if key else text.upper()


def test_a_member_of_a_record():
    """The record is created again, its other members are the same."""
    spec = BeadSpec(title="t", creator="c")
    new = rewrite({"spec": spec}, "/spec/title", upper)["spec"]
    assert (new.title, new.creator, spec.title) == ("TITLE:T", "c", "t")


def test_every_string_below():
    """At any depth, names of members too; other values stay."""
    data = {"a": ["x", {"b": "y", "c": 1}], "n": None}
    found = rewrite({"spec": BeadSpec(title="t", creator="c", data=data)}, "/spec/data/**", upper)[
        "spec"
    ]
    assert found.data == {"A": ["A:X", {"B": "B:Y", "C": 1}], "N": None}


def test_items_of_an_array():
    """Each event of a call."""
    events = [NewEvent(type="a", data={}, subject="s"), NewEvent(type="b", data={})]
    found = rewrite({"events": events}, "/events/*/subject", upper)["events"]
    assert [event.subject for event in found] == ["SUBJECT:S", None]


def test_members_that_become_one_name_are_kept_apart():
    """No value is lost."""
    found = rewrite({"d": {"a": 1, "b": 2}}, "/d/**", lambda text, key: "m")
    assert found == {"d": {"m": 1, "m 2": 2}}


def test_bytes_are_text_when_they_are():
    """UTF-8 without NUL; the rest passes."""
    assert rewrite({"stdin": b"abc"}, "/stdin", upper) == {"stdin": b"STDIN:ABC"}
    for data in (b"a\0b", b"\xff\xfe"):
        assert rewrite({"stdin": data}, "/stdin", upper) == {"stdin": data}


def test_a_pointer_to_nothing_changes_nothing():
    """An argument that is absent, or None."""
    assert rewrite({"note": None}, "/note", upper) == {"note": None}
    assert rewrite({}, "/note", upper) == {}


def test_bytes_that_are_json_are_looked_into():
    """As a patch is; what does not match, or has no finding, stays byte for byte."""
    from agentbox.policy.redaction.walk import rewrite

    def upper(text, _key):
        return text.upper()

    patch = b'[{"op": "add", "value": {"a": ["x"]}}, 1]'
    assert rewrite(patch, "/*/value/**", upper) == b'[{"op": "add", "value": {"A": ["X"]}}, 1]'
    for same in (b'[ {"op":"x"} ]', b"{}", b"[", b"3", b'[{"value": "X"}]'):
        assert rewrite(same, "/*/value/**", upper) == same
