"""What each detector finds, and what it ignores. Every planted value is invented."""

import time

import pytest

from agentbox.policy.redaction.detectors import RULES, is_iban, is_secret_name, passes_luhn
from agentbox.policy.redaction.findings import mask_spans

LOWER = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
FOUND = {
    "secret": [
        "AKIA" + "ABCDEFGH12345678",
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 20,
        "glpat-" + "a1" * 10,
        "sk-" + "ant-" + "a1" * 20,
        "sk_" + "live_" + "a1" * 12,
        "xox" + "b-1234567890-abcdef",
        "AIza" + "a1-_" * 8 + "abc",
        "hf_" + "a1" * 17,
        "npm_" + "a1" * 18,
        "nsec1" + (LOWER + LOWER)[:58],
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nnever ends",
    ],
    "email": ["jane.doe+tag@mail.example.org", "x@y.io"],
    "phone": ["+49 30 1234567", "+14155550123", "(415) 555-0123", "415-555-0123"],
    "account_number": [
        "DE89370400440532013000",
        "GB29 NWBK 6016 1331 9268 19",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
    ],
    "url": ["postgres://user:pw@db.example.org/x", "https://a:b@example.org"],
}
LEFT = {
    "secret": [
        "the token of the box", "sk-short", "AKIA is a prefix", "eyJ.eyJ.x", "[SECRET]", "password: [SECRET]", "skeleton",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "password = ", "max_tokens: 100000", "secretary: somebody", "sha256:" + "a1" * 32,
    ],
    "email": ["a@b", "@decorator", "user at example.org", "[EMAIL]"],
    "phone": ["2026-11-21", "127.0.0.1", "1234567890123", "+1", "12:34:56", "[PHONE]"],
    "account_number": ["DE89370400440532013001", "4111 1111 1111 1112", "1767225600000", "a" * 30, "[ACCOUNT_NUMBER]"],
    "url": ["https://example.org/a:b@c", "http://127.0.0.1:9090/x", "[URL]"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in FOUND.items() for text in texts]
)
def test_findings_are_masked_whole(name, text):
    """Alone, in a sentence, and in quotes; nothing of the value remains."""
    for before, after in (("", ""), ("see ", " there"), ('{"x": "', '"}'), ("\n", "\n")):
        new, names = mask_spans(before + text + after, RULES[name](before + text + after))
        if "never ends" in text:
            assert new == f"{before}[SECRET]"
        else:
            assert new == f"{before}[{name.upper()}]{after}"
        assert names == [name]


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in LEFT.items() for text in texts]
)
def test_other_text_is_left_alone(name, text):
    """Near misses, and masks."""
    assert list(RULES[name](text)) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("password=hunter22", "password=[SECRET]"),
        ('"api_key": "abcdef"', '"api_key": "[SECRET]"'),
        ("DB_PASSWORD: hunter22 # x", "DB_PASSWORD: [SECRET] # x"),
        ("token => 'a b c d'", "token => '[SECRET]'"),
        ("?access_token=abcdef123&x=1", "?access_token=[SECRET]&x=1"),
        ("export GITHUB_TOKEN=abcdef123", "export GITHUB_TOKEN=[SECRET]"),
    ],
)
def test_values_under_a_name(text, wanted):
    """The value is masked, the name stays."""
    assert mask_spans(text, RULES["secret"](text))[0] == wanted


@pytest.mark.parametrize(
    "key",
    ["password", "db_password", "apiKey", "API_KEY", "github-token", "clientSecret", "private_key"],
)
def test_names_of_secrets(key):
    """In the usual spellings."""
    assert is_secret_name(key)


@pytest.mark.parametrize(
    "key",
    ["", "tokens_used", "max_tokens", "passwords_file", "secretary", "keyboard", "key", "title"],
)
def test_names_of_other_things(key):
    """Counts and words with such a beginning only."""
    assert not is_secret_name(key)


def test_check_digits():
    """The examples of the standards."""
    assert is_iban("GB82WEST12345698765432")
    assert not is_iban("GB82WEST12345698765433")
    assert passes_luhn("79927398713")
    assert not passes_luhn("79927398710")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000, "@" * 200_000, "a@" * 100_000, "a." * 100_000, "1 " * 100_000, "+1" * 100_000, "http://" * 30_000,
        "password=" * 20_000, "-----BEGIN PRIVATE KEY-----" * 7_000, "eyJ" * 60_000, "eyJ" + "a" * 200_000, "GB29 " * 40_000,
        "AKIA" * 50_000, "sk-" + "a" * 200_000, "(" * 200_000, ":" * 200_000, "password" + " " * 200_000, "x://" + "a" * 200_000,
    ],
)  # fmt: skip
def test_no_text_is_slow(text):
    """200 kB of the worst in under 2 s of this thread."""
    started = time.thread_time()
    for detect in RULES.values():
        list(detect(text))
    assert time.thread_time() - started < 2
