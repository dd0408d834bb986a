"""The attack suite against a real box below a directory: API, agent host, launcher, kernel."""

from collections.abc import Mapping
from typing import Any

import pytest
from support import tables
from support.attack_box import run_attacks

from agentbox.sandbox.attacks.catalogue import CASES

# Cases whose layer does not exist yet, and why; this list must shrink.
NOT_YET: Mapping[str, str] = {}


@pytest.fixture(scope="module")
def card() -> Mapping[str, Any]:
    """One run for all tests: half a minute. Floods write less memory than with the default limit."""
    return run_attacks(limits=tables.limits(memory=256 << 20))


@pytest.fixture(scope="module")
def rows(card: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """By name of the line."""
    return {row["subject"]: row for row in card["rows"]}


def test_nothing_gets_through(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Every case is tried, and each whose layer exists is stopped by one of its layers."""
    assert set(rows) == {line.name for line in CASES}
    open_still = {
        name: row["said"]
        for name, row in rows.items()
        if row["state"] != "good" and name not in NOT_YET
    }
    assert open_still == {}
    assert len([row for row in rows.values() if row["state"] == "good"]) >= 95


def test_no_provider_is_asked(card: Mapping[str, Any]) -> None:
    """What the model gateway refused never left the box."""
    assert card["asked"] == []


def test_no_line_is_benign(card: Mapping[str, Any]) -> None:
    """A benign denial raises no alert. Calls that no well-meaning program makes are attacks, and
    reported as such."""
    assert len(card["quiet"]) > 20
    assert [quiet for quiet in card["quiet"] if quiet] == []
    attacks = {rule for kind, rule in card["classes"] if kind == "attack"}
    assert {
        "ptrace",
        "process_vm_readv",
        "bpf",
        "mount",
        "init_module",
        "keyctl",
        "connect",
    } <= attacks
    assert {kind for kind, _ in card["classes"]} == {"policy", "attack"}


def test_floods_end_alone(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Whoever uses up what belongs to all is refused more or ended, and the box answers for the rest of the lines."""
    floods = {
        name: row
        for name, row in rows.items()
        if name.startswith(("limits.", "streams.")) and name not in NOT_YET
    }
    assert {row["state"] for row in floods.values()} == {"good"}
    assert len(floods) >= 7


def test_a_line_that_is_not_stopped_is_told(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Each of those that nothing stops yet is bad or unknown, never good by mistake."""
    assert all(rows[name]["state"] in ("bad", "unknown", "good") for name in NOT_YET)
    assert all(rows[name]["said"].startswith(("NOT STOPPED", "target missing")) for name in NOT_YET if rows[name]["state"] != "good")  # fmt: skip
