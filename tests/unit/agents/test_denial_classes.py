"""Classes of denials: by the table, which must be complete, and few denials of an agent are benign."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbox.agents.registry import denial_classes
from agentbox.agents.registry.denial_classes import BENIGN_A_MINUTE, DenialClassifier, load_classes
from agentbox.core.errors import AgentboxError
from agentbox.sandbox.seccomp.call_sets import REFUSED

SOCKET = ("reaper", "socket", "unix-stream-nonblock-cloexec")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A table of the test's own."""
    monkeypatch.setattr(denial_classes, "config_dir", lambda: tmp_path)
    load_classes.cache_clear()
    yield tmp_path / "denials.toml"
    load_classes.cache_clear()


def test_what_is_in_no_row_is_policy() -> None:
    """A rule, a signature or a layer that the table lacks."""
    for row in (
        ("proxy", "net connect", ""),
        ("reaper", "socket", ""),
        ("agent-api", "ptrace", ""),
        ("reaper", "ptraces", ""),
    ):
        assert DenialClassifier().split("a", row, 3) == {"policy": 3}
    assert DenialClassifier().split("a", ("reaper", "ptrace", "of any"), 3) == {"attack": 3}


def test_few_of_an_agent_are_benign(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a minute, across its processes; the next minute has its own, and so has another agent."""
    found, now = DenialClassifier(), [600.0]
    monkeypatch.setattr(denial_classes.time, "monotonic", lambda: now[0])
    assert found.split("a", SOCKET, BENIGN_A_MINUTE - 1) == {"benign": BENIGN_A_MINUTE - 1}
    assert found.split("a", SOCKET, 3) == {"benign": 1, "policy": 2}
    assert found.split("a", SOCKET, 3) == {"policy": 3}
    assert found.split("b", SOCKET, 3) == {"benign": 3}
    now[0] += 60
    assert found.split("a", SOCKET, 3) == {"benign": 3}


def test_every_call_of_the_table_is_one_that_is_refused() -> None:
    """A row that no denial can match would mean nothing."""
    calls = {rule for _, rule, signature in load_classes() if not signature}
    assert calls <= set(REFUSED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[denial]]\n",
        '[[denial]]\nlayer = "a"\nrule = "b"\nsignature = ""\nclass = "good"\n',
        "x",
    ],
)
def test_a_table_that_cannot_be_used(table: Path, text: str) -> None:
    """It is named, and nothing is started without it."""
    table.write_text(text)
    with pytest.raises(AgentboxError, match=r"denials\.toml"):
        DenialClassifier()
