"""JSON from outside: what is accepted, and what is rejected with a reason that quotes none of it."""

import time

import pytest

from agentbox.core.records.json_input import MAX_DEPTH, InvalidJson, read_json


def nested(depth, opened="[", closed="]", inner=""):
    return opened * depth + inner + closed * depth


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (nested(MAX_DEPTH + 1), "nested deeper than 100"), (nested(500, '{"a":', "}", "1"), "nested deeper"),
        (nested(900), "nested deeper"), ("[" * 1_000_000, "nested deeper"), (b"[\xff]", "not valid UTF-8"),
        ('"\\ud800"', "lone surrogate"), ('{"\\uDFFF": 1}', "lone surrogate"), ("NaN", "NaN is not valid JSON"),
        ("[-Infinity]", "-Infinity is not valid JSON"), ("1" + "0" * 5000, "too many digits"), ("{", "line 1, column 2"),
        ("\ufeff{}", "BOM"),
    ],
)  # fmt: skip
def test_what_is_refused(document, why):
    """With a reason."""
    with pytest.raises(InvalidJson, match=why):
        read_json(document)


def test_what_is_taken():
    """A value as deep as a slot accepts, beside thousands of others; escapes that pair up; large
    numbers."""
    assert read_json(nested(MAX_DEPTH)) is not None
    assert read_json("[" + ",".join(["[[1]]"] * 5000) + "]")[4999] == [[1]]
    assert read_json(b'["\\ud83d\\ude00", 123456789012345678901234567890]') == [
        "\U0001f600",
        123456789012345678901234567890,
    ]


def test_a_mebibyte_of_brackets_takes_little():
    """The depth is measured level by level, whatever the form."""
    begun = time.process_time()
    read_json("[" + ",".join(["[]"] * 300_000) + "]")
    assert time.process_time() - begun < 2
