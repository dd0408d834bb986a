"""What is no secret as it is written, and one as it is read: names above and beside, numbers, escapes."""

import json

import pytest
from support import tables

from agentbox.policy.redaction.redactor import build_redactor

GUARD = build_redactor(tables.privacy(entities=("*",), policy={"pods": "strict"}))


def cleaned(value):
    return GUARD.redact("pods", "write", {"x": value}, ("/x/**",), ()).document["x"]


def body(text):
    return (
        GUARD.redact("pods", "write", {"body": text.encode()}, ("/body",), ())
        .document["body"]
        .decode()
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"password": {"x": "abc", "y": [{"z": "d"}]}}, {"password": {"[SECRET]": "[SECRET]", "[SECRET] 2": [{"[SECRET]": "[SECRET]"}]}}),
        ({"a": {"apiKey": ["x", 12345, 1.5, True, None]}}, {"a": {"apiKey": ["[SECRET]", "[SECRET]", "[SECRET]", True, None]}}),
        ({"token": 17, "secret": 0}, {"token": 17, "secret": 0}),
        ({"n": [4111111111111111, 4111111111111112]}, {"n": ["[ACCOUNT_NUMBER]", 4111111111111112]}),
        ({"n": 378282246310005.0, "ms": 1767225600000}, {"n": "[ACCOUNT_NUMBER]", "ms": 1767225600000}),
        ({"n": 1e308, "m": -5, "x": 0.5}, {"n": 1e308, "m": -5, "x": 0.5}),
        ({"name": "API_KEY", "value": "abc"}, {"name": "API_KEY", "value": "[SECRET]"}),
        ({"name": "colour", "value": "red"}, {"name": "colour", "value": "red"}),
        (["x", "--password", "abc", "y"], ["x", "--password", "[SECRET]", "y"]),
        ([["X-Api-Key", "abc"], ["Accept", "b"]], [["X-Api-Key", "[SECRET]"], ["Accept", "b"]]),
        ({"password": {"type": "string", "description": "of a user"}}, {"password": {"type": "string", "description": "of a user"}}),
    ],
)  # fmt: skip
def test_values_are_known_by_what_is_around_them(given, wanted):
    """Names above at any depth and beside; numbers by form and by name; a schema of a secret
    contains none."""
    assert cleaned(given) == wanted
    assert cleaned(wanted) == wanted


@pytest.mark.parametrize(
    "escaped",
    [
        r"jane\u0040mail.example.org", r"jane\x40mail.example.org", "jane%40mail.example.org", "jane&#64;mail.example.org",
        "jane&#x40;mail.example.org", r"jane\\u0040mail.example.org", "jane%2540mail.example.org",
    ],
)  # fmt: skip
def test_escapes_hide_nothing(escaped):
    """Of one level and of two; the surrounding text stays unchanged."""
    assert body(f"see {escaped} there") == "see [EMAIL] there"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('{"a":"x\\njane@example.org","b":1.50}', {"a": "x\n[EMAIL]", "b": 1.5}),
        ('{"card": 4111111111111111}', {"card": "[ACCOUNT_NUMBER]"}),
        ('["{\\"password\\": \\"hunter22\\"}"]', ['{"password": "[SECRET]"}']),
        ('{"jane\\u0040example.org": 1}', {"[EMAIL]": 1}),
    ],
)
def test_a_body_that_is_json_stays_json(given, wanted):
    """It is looked into as its reader will."""
    assert json.loads(body(given)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1,  "a": [1.50, "x\\u00e9"]}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "[" * 5000,
        '{"a": 1e999}',
    ],
)
def test_a_body_without_a_finding_stays_byte_for_byte(text):
    """Also one that no reader of JSON likes."""
    assert body(text) == text


def test_a_name_given_twice_hides_nothing():
    """The first of two values is what a reader may see, or not."""
    assert "hunter22" not in body('{"password": "hunter22", "password": ""}')


def test_a_patch_names_what_it_writes():
    """The last segment of `path` is the member's name."""
    patch = json.dumps(
        [
            {"op": "add", "path": "/db/password", "value": "abc"},
            {"op": "add", "path": "/a", "value": "abc"},
        ]
    )
    found = GUARD.redact(
        "pods", "patch", {"patch": patch.encode()}, ("/patch/*/value/**",), ()
    ).document["patch"]
    assert [row["value"] for row in json.loads(found)] == ["[SECRET]", "abc"]


# Forms of tokens as their vendors publish them; each value is invented.
HEX, WORD = "0123456789abcdef" * 4, "aB3" * 30
SHAPES = {
    "aws": "ABIA" + "Q7" * 8, "gitlab": "gldt" + "-" + WORD[:20], "gitlab-ci": "glcbt" + "-0a_" + WORD[:20], "gitlab-agent": "glagent" + "-" + WORD[:50],
    "gitlab-runner": "GR134" + "8941" + WORD[:20], "gitlab-oauth": "gloas" + "-" + HEX, "slack-hook": "hooks.slack.com" + "/services/T0AB/B0CD/" + WORD[:24],
    "square": "sq0" + "csp-" + WORD[:43], "azure": "Account" + "Key=" + WORD[:86] + "==", "shopify": "shp" + "at_" + HEX[:32],
    "twilio": "S" + "K" + HEX[:32], "mailchimp": HEX[:32] + "-us" + "12", "telegram": "123456789" + ":AA" + WORD[:33], "npmrc": "//r.example/:_auth" + "Token=" + WORD[:36],
    "discord": "M" + WORD[:23] + "." + WORD[:6] + "." + WORD[:27], "bearer": "Authorization: Bear" + "er " + WORD[:40], "basic": "Authorization: Ba" + "sic dXNlcjpwYXNz",
    "vault": "hvs" + "." + WORD[:24], "linear": "lin_" + "api_" + WORD[:40], "docker": "dckr_" + "pat_" + WORD[:27], "sentry": "sntrys" + "_" + WORD[:60],
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_tokens_of_providers(name):
    """Nothing of the token remains, in a sentence, in JSON and after an escaped line end."""
    value = SHAPES[name]
    tail = value.rpartition(" ")[2].rpartition("=" if name == "npmrc" else "\0")[2][-20:]
    for text in (f"see {value} there", json.dumps({"a": f"x\n{value}\ny"}), f"a\\n{value}\\nb"):
        assert tail not in body(text)
