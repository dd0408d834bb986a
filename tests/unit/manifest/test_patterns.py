"""Patterns: their forms, what they match, and that `covers` and `overlaps` never err on the wide side."""

import re
from fnmatch import translate
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pattern_samples import PATTERNS, VALUES

from agentbox.manifest.tables import policies
from agentbox.policy.patterns import globs, hosts
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.hosts import HostPattern, split_address
from agentbox.policy.patterns.paths import PathPattern
from agentbox.policy.patterns.scopes import OPERATIONS, SCOPES, Scope, parse

ANY_PACE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
GLOBS = st.text("ab*?", max_size=6)
TEXTS = st.text("abc", max_size=6)


@ANY_PACE
@given(GLOBS, TEXTS)
def test_a_glob_matches_what_the_standard_library_says(glob: str, text: str) -> None:
    """`*` and `?`, judged by fnmatch."""
    assert globs.matches(glob, text) == (re.match(translate(glob), text) is not None)


@ANY_PACE
@given(GLOBS, GLOBS, TEXTS)
def test_glob_relations_are_sound(wide: str, narrow: str, text: str) -> None:
    """covers: every text of the narrow one is in the wide one. No overlap: no text is in both."""
    if globs.covers(wide, narrow) and globs.matches(narrow, text):
        assert globs.matches(wide, text)
    if globs.matches(wide, text) and globs.matches(narrow, text):
        assert globs.overlaps(wide, narrow)


@ANY_PACE
@given(st.text("ab*", max_size=6), GLOBS)
def test_covers_misses_nothing_without_question_marks(wide: str, narrow: str) -> None:
    """A negative result has a text that proves it: the alphabet has a letter that occurs in no
    glob."""
    samples = _all_texts(narrow)
    if not globs.covers(wide, narrow):
        assert any(
            globs.matches(narrow, text) and not globs.matches(wide, text) for text in samples
        )


def _all_texts(glob: str) -> list[str]:
    """Texts of a glob with its wildcards filled by a foreign letter, its stars by no and by many."""
    filled = [""]
    for sign in glob:
        choices = {"*": ("", "z" * 8), "?": ("z",)}.get(sign, (sign,))
        filled = [text + choice for text in filled for choice in choices]
    return filled


@pytest.mark.parametrize("scope", SCOPES)
def test_relations_are_sound(scope: Scope) -> None:
    """For every scope: what a covered pattern matches the covering one matches; disjoint patterns share no value."""

    @ANY_PACE
    @given(PATTERNS[scope], PATTERNS[scope], VALUES[scope])
    def check(wide: str, narrow: str, value: str) -> None:
        a, b = parse(scope, wide), parse(scope, narrow)
        if a.covers(b):
            assert not b.matches(value) or a.matches(value)
            assert a.overlaps(b)
            assert b.overlaps(a)
        if a.matches(value) and b.matches(value):
            assert a.overlaps(b)
        assert a.overlaps(b) == b.overlaps(a)

    check()


@pytest.mark.parametrize("scope", SCOPES)
def test_covers_is_an_order(scope: Scope) -> None:
    """Each covers itself, and coverage is transitive."""

    @ANY_PACE
    @given(PATTERNS[scope], PATTERNS[scope], PATTERNS[scope])
    def check(first: str, second: str, third: str) -> None:
        a, b, c = (parse(scope, text) for text in (first, second, third))
        assert a.covers(a)
        if a.covers(b) and b.covers(c):
            assert a.covers(c)

    check()


@pytest.mark.parametrize("scope", SCOPES)
def test_a_pattern_as_text_is_itself(scope: Scope) -> None:
    """Printing and parsing give the same set."""

    @ANY_PACE
    @given(PATTERNS[scope])
    def check(text: str) -> None:
        assert parse(scope, str(parse(scope, text))) == parse(scope, text)

    check()


@pytest.mark.parametrize(
    ("scope", "pattern", "matched", "other"),
    [
        ("fs", "/data/**", "/data/x/y", "/data-foo"),
        ("fs", "/data/**", "/data", "/dat"),
        ("fs", "/data", "/data", "/data/x"),
        ("fs", "/a/*/c", "/a/b/c", "/a/b/b/c"),
        ("fs", "/data/**", "/data/x", "/data/../etc"),
        ("fs", "/**", "/anything", "relative/x"),
        ("fs", "/**", "$TMP/x", "/a//b"),
        ("exec", "git", "git", "/usr/bin/git"),
        ("exec", "/usr/bin/*", "/usr/bin/git", "/usr/bin/x/y"),
        ("net", "x.org", "x.org:443", "x.org:80"),
        ("net", "x.org:*", "x.org:80", "y.x.org:80"),
        ("net", "*.x.org", "a.b.x.org:443", "x.org:443"),
        ("net", "*.x.org", "a.x.org:443", "ax.org:443"),
        ("net", "10.0.0.0/8:*", "10.1.2.3:22", "11.0.0.1:22"),
        ("net", "10.0.0.0/8", "[::ffff:10.0.0.1]:443", "ten.example:443"),
        ("net", "*", "x.org:443", "x.org:80"),
        ("net", "*:*", "[2001:db8::1]:22", "X.org:22"),
        ("net", "x.org", "x.org:443", "x.org.:443"),
        ("env", "LC_*", "LC_ALL", "LANG"),
        ("tool", "git/*", "git/push", "github/push"),
        ("llm", "openai", "openai/gpt", "openai-2/gpt"),
        ("llm", "openai/small-*", "openai/small-1", "openai/large"),
        ("agent", "rev-*", "rev-a", "review"),
    ],
)
def test_what_matches(scope: Scope, pattern: str, matched: str, other: str) -> None:
    """A value on each side of the border."""
    assert parse(scope, pattern).matches(matched)
    assert not parse(scope, pattern).matches(other)


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        *(
            ("fs", text)
            for text in (
                "",
                "x",
                "x/y",
                "~/x",
                "/a/",
                "/a//b",
                "/a/../b",
                "/**/a",
                "/a**",
                "$HOME/x",
                "/$TMP",
            )
        ),
        *(("exec", text) for text in ("", "a b", "$COMMAND/x", "bin/x", "-x")),
        *(
            ("net", text)
            for text in (
                "",
                "https://x.org/",
                "x.org/y",
                "x.org:0",
                "x.org:65536",
                "x.org:http",
                "*x.org",
            )
        ),
        *(
            ("net", text)
            for text in (
                "1.2.3",
                "0x7f.1",
                "10.0.0.5/8",
                "a..b",
                "-a.b",
                "ü.example",
                "*.*",
                "2130706433",
            )
        ),
        *(("env", text) for text in ("", "*", "A*", "1A", "A-B", "$HOME")),
        *(("tool", text) for text in ("", "a*", "*/a", "a//b", "$TOOL")),
        *(("llm", text) for text in ("", "A/b", "a/", "a/b c", "*/x")),
        *(("agent", text) for text in ("", "A", "a*", "a_b")),
    ],
)
def test_what_is_no_pattern(scope: Scope, text: str) -> None:
    """Refused with the form of the scope."""
    with pytest.raises(PatternError) as caught:
        parse(scope, text)
    assert caught.value.form
    assert f'"{text}"' in str(caught.value)


def test_direct_ports() -> None:
    """A tcp pattern is one port number."""
    port = parse("net", "5432", "tcp")
    assert port.matches("5432")
    assert not port.matches("54321")
    assert port.covers(parse("net", "5432", "tcp"))
    assert not port.overlaps(parse("net", "5433", "tcp"))
    for text in ("0", "65536", "x.org", "-1", "*"):
        with pytest.raises(PatternError):
            parse("net", text, "tcp")


def test_where_a_variable_lies_is_not_known() -> None:
    """$WORKSPACE may be below any path, so it overlaps all of them and is covered by `/**` alone."""
    workspace = parse("fs", "$WORKSPACE/**")
    assert parse("fs", "/workspace/**").overlaps(workspace)
    assert not parse("fs", "/workspace/**").covers(workspace)
    assert parse("fs", "/**").covers(workspace)
    assert not parse("fs", "$TMP/**").overlaps(workspace)
    assert parse("net", "x.org").overlaps(parse("net", "$EGRESS"))
    assert not parse("net", "*").covers(parse("net", "$EGRESS"))
    assert parse("net", "*:*").covers(parse("net", "$EGRESS"))


def test_a_place_for_a_variable() -> None:
    """What follows the variable is kept; a pattern of many paths is not a valid binding."""

    def path(text: str) -> PathPattern:
        return PathPattern.parse(text, exec_scope=False)

    assert path("$WORKSPACE/src/**").rebase(path("/w")) == path("/w/src/**")
    assert path("$WORKSPACE").rebase(path("/w")) == path("/w")
    assert path("$TOOLCHAIN/**").rebase(path("/usr/**")) == path("/usr/**")
    with pytest.raises(ValueError):
        path("$WORKSPACE/src").rebase(path("/w/**"))


def test_hosts_without_their_ports() -> None:
    """An exemption of a private address compares hosts and ports separately."""
    whole, one = HostPattern.parse("10.0.0.0/8:80"), HostPattern.parse("10.0.0.5")
    assert whole.covers_host(one)
    assert not whole.covers(one)


@pytest.mark.parametrize(
    "value", ["x.org", "x.org:0", "X.org:1", "x.org:1x", "[x.org:1", ":1", "10.0.0.0/8:1"]
)
def test_addresses_in_normal_form_only(value: str) -> None:
    """Anything else is refused, so that a pattern never sees two spellings of one target."""
    with pytest.raises(ValueError):
        split_address(value)


def test_scopes_are_those_of_the_manifest() -> None:
    """Names and operations, so that neither can gain one alone."""
    assert SCOPES == policies.SCOPES
    operations: dict[str, Literal[True]] = {
        name: True for names in OPERATIONS.values() for name in names
    }
    assert set(operations) == {
        "read",
        "write",
        "connect",
        "tcp",
        "run",
        "call",
        "spawn",
        "message",
        "signal",
    }


def test_names_that_agents_make_up_are_not_kept_without_end() -> None:
    """What was looked at last is remembered, and no more than that."""
    pattern = HostPattern.parse("*.example.com:*")
    for number in range(5000):
        pattern.matches(f"made-up-{number}.example.org:443")
    assert hosts._network.cache_info().currsize <= 4096
