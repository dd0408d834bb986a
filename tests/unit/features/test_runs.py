"""Rows of real trials of features: stored one by one, and shown on the page."""

import json
from pathlib import Path
from typing import Any

import pytest
from manifests import wanted
from record import inputs_of, kept, record, stands
from reference.feature_runs import run_section
from room import BASE, FACTOR, locked_bytes, too_little
from trial import Row

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import load_features
from agentbox.plan.lockfile.reader import parse_lock

FEATURES = load_features()
OPTIONAL = {name: row for name, row in FEATURES.items() if row.gate}


def row(name: str, **fields: Any) -> Row:
    return Row(
        name, locks=True, builds=True, boots=True, green=True, seconds={"lock": 60.0}, **fields
    )


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "features.json", tmp_path / "features.md"


def test_a_row_is_kept_at_once_and_the_page_with_it(files: tuple[Path, Path]) -> None:
    """Rows of other features stay; the same files return the same row, others none."""
    record(row("go"), "digest", *files)
    record(row("node", exceptions=("desktop",)), "digest", *files)
    assert kept("node", "digest", files[0]) == row("node", exceptions=("desktop",))
    assert kept("go", "digest", files[0]) == row("go")
    assert kept("go", "other", files[0]) is None
    assert kept("rust", "digest", files[0]) is None
    assert "| node | yes | yes | yes |" in files[1].read_text()
    assert "| rust | not run |" in files[1].read_text()


def test_kept_rows_count_in_a_run_of_all_only() -> None:
    """Never in the default run, never for a named feature."""
    assert stands(True, [])
    assert not stands(False, [])
    assert not stands(False, ["go"])
    assert not stands(True, ["go"])


def test_a_row_for_want_of_disk_replaces_none(files: tuple[Path, Path]) -> None:
    """It is stored where there is no other."""
    record(row("go"), "digest", *files)
    record(Row("go", locks=True, short=True, why="build: no room"), "digest", *files)
    record(Row("rust", locks=True, short=True, why="build: no room"), "digest", *files)
    assert kept("go", "digest", files[0]) == row("go")
    assert "- **rust**: build: no room" in files[1].read_text()


def test_inputs_are_those_of_the_features_that_are_on() -> None:
    """Another feature's file does not count."""
    go, node = inputs_of(("build", "core", "go")), inputs_of(("build", "core", "node"))
    assert go == inputs_of(("build", "core", "go"))
    assert go != node


def test_room_is_counted_from_the_lock() -> None:
    """Core's own files are in every trial; each byte more wants its multiple."""
    assert locked_bytes(parse_lock(CHECKOUT / "agentbox.lock"), "x86_64-linux") == 0
    assert too_little(10**9, BASE + FACTOR * 10**9) == ""
    assert too_little(10**9, BASE) == "16.0 GB of free disk are needed, 2.0 GB are free"


def test_a_device_that_is_not_here_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The box starts with an empty exception; where the device exists, the exception is complete
    and acknowledged."""
    import manifests

    monkeypatch.setattr(manifests, "_NVIDIA", CHECKOUT / "no-such-device")
    without = wanted(FEATURES, "cuda")
    assert (without.absent, without.deprived) == (("nvidia devices",), ("local_cuda",))
    assert "security.exceptions.gpu-cuda = { builtin = false }" in without.text
    monkeypatch.setattr(manifests, "_NVIDIA", CHECKOUT)
    whole = wanted(FEATURES, "cuda")
    assert (whole.absent, whole.deprived) == ((), ())
    assert "security.audit_acknowledged = true" in whole.text


def test_the_page_says_what_was_not_run() -> None:
    """Unrun parts are listed by feature, system and package source; failures are listed apart."""
    base = {"at": "2026-01-02T03:04:05Z", "machine": "x86_64"}
    red = Row("go", locks=True, builds=True, needs=2 * 10**9, why="probes: go-compiles: no")
    absent = Row(
        "local_cuda",
        locks=True,
        builds=True,
        boots=True,
        without=("nvidia devices",),
        why="probes: none",
    )
    refused = Row("code_server", why="E501")
    rows = {
        each.feature: {**json.loads(json.dumps(each.to_json())), **base}
        for each in (row("node"), red, absent, refused)
    }
    red_part, not_run = "\n".join(run_section(OPTIONAL, rows)).split("Not run, or not completely")
    assert "- **go**: probes: go-compiles: no" in red_part
    assert (
        "Run 2026-01-02 on x86_64: 3 features in 1 minutes. go needs the most free disk: 2.0 GB."
        in red_part
    )
    assert (
        "- **local_cuda**: started without the nvidia devices, which this machine lacks. probes: none"
        in not_run
    )
    assert "- **code_server**: E501" in not_run
    assert "- **rust**: no result is stored" in not_run
    assert "- **aarch64-linux**: 3 of the tested features" in not_run
    assert "- **the package source nixpkgs**: " in not_run
