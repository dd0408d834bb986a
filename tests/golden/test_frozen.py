"""What others read of agentbox is what it was: names on the wire, on disk, in the environment, on the command line."""

import re
from dataclasses import is_dataclass
from typing import get_origin

import freeze
import pytest
from frozen import sources


@pytest.fixture(scope="module")
def facts() -> freeze.Facts:
    """As the code has them now."""
    return freeze.facts()


def test_nothing_that_others_read_has_changed(facts: freeze.Facts) -> None:
    """Each name that was added, removed or changed is listed. If that is intended, write the file
    again, and state the reason in CHANGELOG.md."""
    changes = list(freeze.differences(freeze.read(), facts))
    assert not changes, "\n".join(
        [*changes, f"if this is meant: {freeze.COMMAND}, and the reason in CHANGELOG.md"]
    )


def test_the_file_is_in_its_form(facts: freeze.Facts) -> None:
    """One fact a line, in order: a change of one is a change of one line."""
    assert freeze.TARGET.read_text(encoding="utf-8") == freeze.text(facts)


def test_every_kind_of_fact_is_found(facts: freeze.Facts) -> None:
    """No section is empty, and known names are in their sections: a source that was moved is
    noticed."""
    assert all(facts.values())
    for section, name in (
        ("HTTP operations", "heartbeat"), ("records", "HTTP close_bead response.title"), ("records", "file boot.json.boot_id"),
        ("records", "plan.json.programs"), ("databases", "var/lib/agentbox/beads/beads.db beads.title"),
        ("agent-host RPC", "agent.spawn takes spec"), ("agent API", "memory.store takes value"), ("exit codes", "007"),
        ("command line", "agentbox up --engine"), ("problems", "lease-lost"), ("events", "agent.started"),
        ("boot", "event BootstrapCompleted"), ("environment", "AGENTBOX_PREFIX"), ("manifest", "api.port"), ("rules", "E001"),
        ("metrics", "slots agentbox_adapter_dispatch_total"), ("sandbox", "doctor check landlock"),
        ("files", "box /run/agentbox/bootstrap.done"), ("documents", "file bootstrap.done: kernel.release"),
    ):  # fmt: skip
        assert name in facts[section], f"{section}: {name}"


def test_every_file_that_writes_records_knows_a_listed_one() -> None:
    """Where `asdict` is used beside a record of the same file, one that the file knows has its row
    in `sources.py`."""
    listed = {get_origin(kind) or kind for kind in freeze.records().kinds}
    unlisted = []
    for module in (one for one in sources.MODULES if "asdict" in vars(one)):
        known = [
            one for one in vars(module).values() if isinstance(one, type) and is_dataclass(one)
        ]
        if any(one.__module__ == module.__name__ for one in known) and listed.isdisjoint(known):
            unlisted.append(module.__name__)
    assert unlisted == []


def test_one_file_knows_where_things_are() -> None:
    """Modules of agentbox are imported in `sources.py` alone: a move of them touches no other file of the generator."""
    folder = freeze.TARGET.parents[2] / "tools"
    files = [folder / "freeze.py", *folder.glob("frozen/*.py")]
    pattern = re.compile(r"^(from|import) agentbox\b", re.MULTILINE)
    assert [path.name for path in files if pattern.search(path.read_text(encoding="utf-8"))] == [
        "sources.py"
    ]


def test_a_difference_is_told_by_name() -> None:
    """What was added, removed and changed, each with its section."""
    old = {"rules": {"E001": "error", "E002": "error"}, "files": {"a.db": ""}}
    new = {"rules": {"E002": "warning", "W003": "warning"}, "files": {"a.db": ""}}
    assert list(freeze.differences(old, new)) == [
        "removed from rules: E001", "changed in rules: E002: 'error' -> 'warning'", "added to rules: W003 warning",
    ]  # fmt: skip
