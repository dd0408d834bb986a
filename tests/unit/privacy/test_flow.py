"""A body in pieces is masked exactly like a complete one, wherever it is split."""

import random
from dataclasses import replace

import pytest
from support import tables

from agentbox.policy.redaction.redacting_stream import RedactingStream
from agentbox.policy.redaction.redactor import WINDOW, RedactionFailed, Redactor, build_redactor

KEY = "AKIA" + "ABCDEFGH12345678"


def guard(policy="strict"):
    """Its clock stands still: the duration of a search is not the subject of these tests."""
    made = build_redactor(tables.privacy(entities=("secret", "email"), policy={"pods": policy}))
    return replace(made, clock=lambda: 0.0)


async def cut(body, size):
    for at in range(0, len(body), size):
        yield body[at : at + size]


async def through(made, body, size):
    flow = RedactingStream(made, "pods", cut(body, size))
    return b"".join([piece async for piece in flow]), flow


@pytest.mark.parametrize("seed", range(8))
async def test_findings_are_masked_wherever_they_lie(seed):
    """At every distance from the edge of a window, with characters of many bytes around."""
    chance = random.Random(seed)
    words = ["\u00e9" * chance.randrange(1, 40), "word", "\U0001f600", "\n"]
    text = ""
    while len(text) < 4 * WINDOW:
        text += " ".join(chance.choices(words, k=chance.randrange(1, 900)))
        text += chance.choice([f" {KEY} ", " password=hunter2hunter2 ", " someone@example.org "])
    whole = guard().redact("pods", "write", {"body": text.encode()}, ("/body",), ())
    found, flow = await through(
        guard(), text.encode(), chance.choice([1, 7, 4096, 65_521, 1 << 20])
    )
    assert found == whole.document["body"]
    assert flow.counts == whole.counts
    assert KEY.encode() not in found


async def test_a_finding_on_each_edge():
    """The key moves over the end of the window, a character at a time."""
    for at in range(WINDOW - 40, WINDOW + 8):
        found, _ = await through(guard(), (" " * at + KEY + " " * WINDOW).encode(), 5000)
        assert found == (" " * at + "[SECRET]" + " " * WINDOW).encode()


@pytest.mark.parametrize(
    "body", [b"\0" + KEY.encode() * 9, b"\xff\xfe" + KEY.encode(), b"", KEY.encode() + b"\xff"]
)
async def test_what_is_no_text_passes_as_it_is(body):
    """NUL, other encodings, nothing."""
    for size in (1, 3, 1 << 20):
        found, flow = await through(guard(), body, size)
        assert (found, dict(flow.counts)) == (body, {})


async def test_a_text_that_ends_as_none_is_searched_so_far():
    """What was passed on as text was searched; the rest passes unchanged."""
    text = (KEY + " ") * 8000
    found, flow = await through(guard(), text.encode() + b"\xff tail", 10_000)
    assert found == text.replace(KEY, "[SECRET]").encode() + b"\xff tail"
    assert flow.counts["secret"] == 8000


async def test_off_only_counts_bytes():
    """And the hash is that of the received bytes, whatever was masked."""
    import hashlib

    for policy, want in (("off", KEY), ("soft", "[SECRET]")):
        found, flow = await through(guard(policy), KEY.encode(), 4)
        assert (found, flow.sha256) == (want.encode(), hashlib.sha256(KEY.encode()).hexdigest())


async def test_a_failing_search_refuses_or_is_counted():
    """strict raises, soft lets the original pass."""

    def broken(_text):
        raise RuntimeError("the detector broke")

    with pytest.raises(RedactionFailed):
        await through(Redactor(detectors={"secret": broken}, policies={"pods": "strict"}), b"a", 1)
    found, flow = await through(
        Redactor(detectors={"secret": broken}, policies={"pods": "soft"}), b"a", 1
    )
    assert (found, flow.failed) == (b"a", 1)


PEM = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n" * 80
    + "-----END PRIVATE KEY-----"
)
JWT = f"eyJ{'a1-_' * 700}.eyJ{'b2-_' * 700}.{'c3-_' * 100}"


@pytest.mark.parametrize("long", [PEM, JWT])
@pytest.mark.parametrize("before", [0, 1000, 2000, 3000, 3300, 6000])
async def test_a_finding_longer_than_the_overlap(long, before):
    """A key of 3 KiB, a token of 6 KiB: complete, whichever edge they cross."""
    at = WINDOW - before
    body = ("x" * (at - 1) + " " + long + " " + "y " * WINDOW).encode()
    for size in (1000, WINDOW, len(body)):
        found, _ = await through(guard(), body, size)
        assert found == ("x" * (at - 1) + " [SECRET] " + "y " * WINDOW).encode()
