"""Sizes, similar names, and what looks like a credential."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.manifest.secrets import is_credential, is_placeholder
from agentbox.manifest.suggest import edit_distance, suggest_names
from agentbox.manifest.toml_text import as_seconds, as_size
from agentbox.manifest.types import Size, size_bytes

_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@given(st.integers(min_value=1, max_value=10**9), st.sampled_from(sorted(_UNITS)))
def test_size_in_bytes(count: int, unit: str) -> None:
    """A whole number of a binary unit."""
    assert Size(f"{count}{unit}") == count * _UNITS[unit]


@pytest.mark.parametrize(
    "text", ["", "1", "GiB", "0MiB", "01MiB", "-1MiB", "1 MiB", "1MB", "٣MiB", "1.5GiB"]
)
def test_what_is_no_size(text: str) -> None:
    """Anything else is a ValueError."""
    with pytest.raises(ValueError, match="not a size"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("512MB", "512MiB"),
        ("512m", "512MiB"),
        ("2g", "2GiB"),
        ("2048 KB", "2048KiB"),
        ("1.5GiB", "1536MiB"),
        ("4096", "4KiB"),
    ],
)
def test_corrected_sizes(written: str, meant: str) -> None:
    """The spelling that is suggested is a size."""
    assert as_size(written) == meant
    assert size_bytes(meant)


def test_corrected_times() -> None:
    """Whole seconds, at least one."""
    assert [as_seconds(text) for text in ("30s", "2m", "1h", "500ms", "30", "soon")] == [
        30,
        120,
        3600,
        1,
        30,
        None,
    ]


@given(st.text(max_size=8), st.text(max_size=8))
def test_distance_is_a_metric_of_edits(left: str, right: str) -> None:
    """Zero for equal words only, symmetric, at most the longer length."""
    assert (edit_distance(left, right) == 0) == (left == right)
    assert edit_distance(left, right) == edit_distance(right, left)
    assert edit_distance(left, right) <= max(len(left), len(right))


def test_nearest() -> None:
    """Two edits, or a third of the word; the closest first."""
    assert suggest_names("memry", ["memory", "mesh", "meta"]) == ["memory"]
    assert suggest_names("sytsem", ["systems", "system"]) == ["system", "systems"]
    assert suggest_names("zebra", ["memory", "mesh"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "sk-" + "a" * 20,
        "ghp_" + "a" * 36,
        "github_pat_" + "a" * 40,
        "AKIA" + "A" * 16,
        "AIza" + "a" * 35,
        "xoxb-" + "1" * 12,
        "nsec1" + "q" * 58,
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "postgres://user:secret@db/x",
        "123456789:AA" + "a" * 33,
        "eyJhbGciOiJI.eyJzdWIiOiIx.abcdefghijk",
    ],
)
def test_credentials(text: str) -> None:
    """Known forms, also inside a longer text."""
    assert is_credential(text)
    assert is_credential(f"--key={text} ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "task-runner-for-everything",
        "ANTHROPIC_API_KEY",
        "https://host:9090/a@b",
        "sha256:" + "a" * 64,
        "sk-short",
    ],
)
def test_what_is_no_credential(text: str) -> None:
    """Names, digests, URLs without a password."""
    assert not is_credential(text)


def test_placeholders() -> None:
    """As a complete word, case ignored."""
    for text in (
        "change-me",
        "CHANGEME",
        "your-token-here",
        "<host>",
        "TODO: ask",
        "xxx",
        "replace-me",
        "placeholder",
    ):
        assert is_placeholder(text), text
    for text in ("", "changes", "my-token", "a<b>", "exchange-me"):
        assert not is_placeholder(text), text
