"""The policy: strict, soft, off."""

import pytest
from support import tables

from agentbox.core.errors import AgentboxError
from agentbox.policy.redaction.detectors import RULES
from agentbox.policy.redaction.redactor import RedactionFailed, Redactor, build_redactor

KEY = "AKIA" + "ABCDEFGH12345678"


def guard(policy="soft", entities=("secret",), **more):
    return build_redactor(
        tables.privacy(**{"entities": entities, "policy": {"beads": policy}, **more})
    )


def clean(made, document, fields=("/x/**",), identifiers=()):
    return made.redact("beads", "create_epic", document, fields, identifiers)


@pytest.mark.parametrize("policy", ["strict", "soft"])
def test_findings_are_masked_and_counted(policy):
    """By class; the input is unchanged."""
    given = {"x": {"a": [f"see {KEY}", "x@y.io"]}}
    found = clean(guard(policy, ("secret", "email")), given)
    assert found.document == {"x": {"a": ["see [SECRET]", "[EMAIL]"]}}
    assert found.counts == {"secret": 1, "email": 1}
    assert given == {"x": {"a": [f"see {KEY}", "x@y.io"]}}


def test_a_value_under_a_secret_name_is_masked_whole():
    """Whatever it looks like."""
    assert clean(guard(), {"x": {"db_password": "short"}}).document == {
        "x": {"db_password": "[SECRET]"}
    }


def test_masked_text_passes_unchanged():
    """A second pass finds nothing."""
    once = clean(
        guard("soft", ("*",)),
        {"x": {"password": "a", "b": f"{KEY} x@y.io +49 30 1234567 password=hunter22"}},
    )
    twice = clean(guard("soft", ("*",)), once.document)
    assert twice.document == once.document
    assert not twice.counts


@pytest.mark.parametrize(
    "made",
    [guard("off"), guard(enabled=False), guard(mode="off"), Redactor(detectors=RULES, policies={})],
)
def test_off_touches_nothing(made):
    """By slot, by mode, in total, or without a policy."""
    assert clean(made, {"x": KEY}, ("/x",)).document == {"x": KEY}


def test_an_identifier_is_refused_or_counted():
    """It cannot be masked without naming something else; the refusal does not show it."""
    with pytest.raises(RedactionFailed) as caught:
        clean(guard("strict"), {"x": KEY}, (), ("/x",))
    assert KEY not in str(caught.value)
    found = clean(guard("soft"), {"x": KEY}, (), ("/x",))
    assert (found.document, found.counts) == ({"x": KEY}, {"secret": 1})


def failing(text):
    raise RuntimeError("the detector broke")


@pytest.mark.parametrize("detector", [failing])
def test_a_failing_detector(detector):
    """strict refuses, soft lets the original pass and counts."""
    broken = {"secret": detector}
    with pytest.raises(RedactionFailed):
        clean(Redactor(detectors=broken, policies={"beads": "strict"}), {"x": "a"}, ("/x",))
    found = clean(Redactor(detectors=broken, policies={"beads": "soft"}), {"x": "a"}, ("/x",))
    assert (found.document, found.failed) == ({"x": "a"}, 1)


def test_a_slow_search():
    """More than 50 ms and 50 ms per MiB is a failure."""
    ticks = iter((0.0, 0.2, 0.0, 0.2))
    slow = {"detectors": {"secret": RULES["secret"]}, "clock": lambda: next(ticks)}
    with pytest.raises(RedactionFailed, match="too long"):
        clean(Redactor(policies={"beads": "strict"}, **slow), {"x": "a"}, ("/x",))
    assert clean(Redactor(policies={"beads": "soft"}, **slow), {"x": "a"}, ("/x",)).failed == 1


def test_long_texts_are_searched_in_windows():
    """A finding at any position of a text over 1 MiB, across the borders of windows too."""
    made = guard("strict", ("secret",))
    for at in (0, (64 << 10) - 10, (63 << 10) - 5, 700_000, (1 << 20) + 5000):
        text = "x " * (at // 2) + KEY + " y" * ((1 << 19) + 4000)
        found = made.spans(text)
        assert [(span.start, span.end) for span in found] == [(at // 2 * 2, at // 2 * 2 + len(KEY))]


PEM = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n" * 80
    + "-----END PRIVATE KEY-----"
)
JWT = f"eyJ{'a1-_' * 700}.eyJ{'b2-_' * 700}.{'c3-_' * 100}"


@pytest.mark.parametrize("long", [PEM, JWT])
@pytest.mark.parametrize("before", [0, 1000, 2000, 3000, 3300])
def test_a_long_finding_is_found_across_a_window(long, before):
    """A key of 3 KiB is longer than the overlap; nothing of it remains, and nothing around it is
    removed."""
    at = (64 << 10) - before
    text = "x" * (at - 1) + " " + long + " " + "y " * (1 << 19)
    assert [(span.start, span.end) for span in guard("strict", ("secret",)).spans(text)] == [
        (at, at + len(long))
    ]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [({"entities": ("person",)}, "person"), ({"mode": "local-cpu"}, "local-cpu")],
)
def test_what_no_detector_covers_is_refused(table, sentence):
    """By name."""
    with pytest.raises(AgentboxError, match=sentence):
        build_redactor(tables.privacy(**table))
