"""The registry has every limit, under the key that sets it."""

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from reference.limits import COMMAND, TARGET, marked_tests, page

from agentbox.contracts.orchestrator import Limits
from agentbox.manifest.schema.generator import manifest_schema
from agentbox.manifest.tables import limits as section
from agentbox.policy.limits.registry import LIMITS

_ROOT = Path(__file__).parents[3]


def test_every_key_of_the_manifest_has_a_row() -> None:
    """`[limits]` less the list that is no number, and what a spec may lower."""
    keys = {one.name for one in fields(section.LimitsTable)} - {"allow_degraded"}
    assert keys == {row.config_path.removeprefix("limits.") for row in LIMITS.values() if row.config_path.startswith("limits.")}  # fmt: skip
    asked = {one.name for one in fields(Limits)} - {"wall_seconds"}
    assert asked <= set(LIMITS)


def test_every_path_is_a_key_of_the_schema() -> None:
    """A path in a breach can be set; a row without one shows its number."""
    known = json.dumps(manifest_schema())
    for row in LIMITS.values():
        assert bool(row.config_path) != (row.fixed is not None)
        assert f'"{row.config_path.rpartition(".")[2]}"' in known


def test_every_row_is_shown_by_a_test_that_there_is() -> None:
    """Each limit has its marked test, and pytest itself finds that, by file, name and case."""
    marked = marked_tests()
    assert set(marked) == set(LIMITS)
    tests = sorted({f"tests/unit/{name}" for name in marked.values()})
    words = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    done = subprocess.run(
        words, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line for line in done.stdout.splitlines() if "::" in line} == set(tests)


def test_names_are_their_own() -> None:
    """A row is found under its own name."""
    assert all(name == row.name for name, row in LIMITS.items())


def test_the_page_is_fresh() -> None:
    """docs/limits.md equals the registry."""
    assert TARGET.read_text() == page(), f"stale: run `{COMMAND}`"
