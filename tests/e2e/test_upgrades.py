"""Upgrades of a real box with the process engine: releases that are not good go back by themselves,
and a command that is killed at any step is finished by the next one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_box import CliBox
from support.release_tree import ReleaseTree, make_release

from agentbox.core.paths import CHECKOUT, Paths

UP = ("--engine", "process")
BEADS = "agentbox/adapters/beads/sqlite/schema.py"
KILLER = CHECKOUT / "tests/support/killed_at_step.py"
PAGE = CHECKOUT / "docs/howto/upgrade-and-roll-back.md"
QUICK = "upgrade.settle_seconds = 1\n"
# The releases that are not good: what is appended to which file, and what the sentence says.
BAD = {
    "its migration fails": (
        {BEADS: '\nMIGRATIONS = (*MIGRATIONS, "CREATE TABLE beads (id TEXT) STRICT;")\n'},
        "beads",
    ),
    "it is never ready": (
        {"agentbox/agents/main.py": '\nraise SystemExit("no")\n'},
        "agent-host",
    ),
    "its sandbox does not hold": (
        {
            "agentbox/sandbox/confinement.py": "\n\ndef restrict_paths(confinement, "
            "abi_override=None):\n    return 6\n"
        },
        "sandbox",
    ),
    "it loses a bead": (
        {BEADS: '\nMIGRATIONS = (*MIGRATIONS, "DELETE FROM tags; DELETE FROM beads;")\n'},
        "beads",
    ),
}
ADDED = {BEADS: '\nMIGRATIONS = (*MIGRATIONS, "CREATE TABLE added (x INTEGER) STRICT;")\n'}


@pytest.fixture
def folder() -> Iterator[Path]:
    """For releases: every user can reach it, unlike the folders of pytest."""
    made = Path(tempfile.mkdtemp(prefix="agentbox-e2e-releases-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliBox]:
    """A box with one bead."""
    made = CliBox(tmp_path_factory.mktemp("upgrades"), "agentbox-e2e-upgrades", 29170)
    made.down()
    made.write(QUICK)
    made.up(*UP)
    assert made("bead", "create", "kept").code == 0
    yield made
    made.down()


def generations(box: CliBox) -> dict[str, Any]:
    found: dict[str, Any] = box("--json", "generations").json
    return found


def current(box: CliBox) -> dict[str, Any]:
    found = generations(box)
    [row] = [row for row in found["generations"] if row["number"] == found["current"]]
    return dict(row)


def titles(box: CliBox) -> list[str]:
    """Without the epic that the task runner makes by itself."""
    rows = box("--json", "bead", "list").json
    return [row["title"] for row in rows if row["title"] != "tasks"]


def upgrade(box: CliBox, release: ReleaseTree, *words: str, step: str = "") -> tuple[int, str]:
    """Exit code and stderr of `upgrade` with that release; killed at `step` if it is given."""
    manifest = ("--manifest", str(box.manifest), "--timeout", "40", "upgrade", *words)
    done = (
        release.run(step, *manifest, environ=box.environ(), script=KILLER)
        if step
        else release.run(*manifest, environ=box.environ())
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.sampled(4, family="bad releases")
@pytest.mark.parametrize("name", BAD)
def test_a_release_that_is_not_good_goes_back(box: CliBox, folder: Path, name: str) -> None:
    """Exit 6 with one sentence that names the reason; the old generation runs, nothing is lost; the
    bad one is not tried again."""
    appended, word = BAD[name]
    before, held = current(box), titles(box)
    release = make_release(folder / "bad", appended)
    code, said = upgrade(box, release)
    assert code == 6, said
    [sentence] = [line for line in said.splitlines() if line.startswith("agentbox: cannot")]
    assert word in sentence
    assert f"generation {before['number']} runs again" in sentence
    assert current(box)["number"] == before["number"]
    assert box.status()["state"] == "ready"
    assert titles(box) == held
    bad = generations(box)["generations"][-1]
    assert bad["verdict"] == "bad"
    assert word in bad["reason"]
    assert bad["log"]
    code, said = upgrade(box, release)
    assert code == 6
    assert f"this is generation {bad['number']}, which is bad" in said


def test_a_good_release_is_confirmed_and_can_be_left(box: CliBox, folder: Path) -> None:
    """One whose store moves: it is held, confirmed and good; going back needs --state, says what is
    lost, and brings the old store back."""
    before, held = current(box), titles(box)
    release = make_release(folder / "good", ADDED)
    code, said = upgrade(box, release)
    assert code == 0, said
    assert "copied: beads/beads.db" in said
    after = current(box)
    assert after["number"] > before["number"]
    assert after["verdict"] == "good"
    assert not Paths(Path(box_record(box)["root"])).held.exists()
    assert any(row["type"] == "generation.confirmed" for row in events(box))
    assert box("bead", "create", "later").code == 0
    refused = box("rollback")
    assert refused.code == 2
    sentence, hint = refused.error()
    assert "does not read beads/beads.db" in sentence
    assert "--state" in hint
    assert "loses 1 bead," in hint
    assert box("rollback", "--state", "--yes").code == 0
    assert current(box)["number"] == before["number"]
    assert titles(box) == held
    assert box("run", "--", "echo", "fine").out == "fine\n"
    forget(box, after["number"])


def test_one_that_is_left_waits_for_the_operator(box: CliBox, folder: Path) -> None:
    """upgrade.rollback = "never": it stays held, `status` says so and changes nothing, and
    `rollback` returns to the one that ran before it, with all that was there."""
    before, held = current(box), titles(box)
    box.write(f'{QUICK}upgrade.rollback = "never"\n')
    try:
        code, said = upgrade(box, make_release(folder / "left", BAD["it loses a bead"][0]))
        assert code == 6, said
        assert "was left as it is, held" in said
        left = current(box)["number"]
        assert left > before["number"]
        for _ in range(2):
            shown = box("--json", "status").json
            assert f"generation {left} is not good" in shown["held"]
        assert "is held" in box("bead", "create", "refused").err
        assert box("rollback").code == 0
    finally:
        box.write(QUICK)
    assert current(box)["number"] == before["number"]
    assert titles(box) == held
    assert "held" not in box("--json", "status").json
    assert generations(box)["generations"][-1]["verdict"] == "bad"


@pytest.mark.sampled(3, family="killed upgrades")
@pytest.mark.parametrize("step", ["prepared", "starting", "confirmed"])
def test_a_killed_upgrade_is_finished_by_the_next_command(
    box: CliBox, folder: Path, step: str
) -> None:
    """SIGKILL of the command: `status` finds the trial and finishes or undoes it; one generation
    runs, with all that was there."""
    before, held = current(box), titles(box)
    release = make_release(folder / "killed", {"agentbox/__init__.py": f"\nSTEP = {step!r}\n"})
    code, said = upgrade(box, release, step=step)
    assert code == -9, said
    finished = box("status", timeout=200)
    assert finished.code == 0, finished.err
    assert "interrupted" in finished.err
    row = current(box)
    assert (row["number"] == before["number"]) == (step != "confirmed")
    assert titles(box) == held
    assert not Paths(Path(box_record(box)["root"])).held.exists()
    assert box("bead", "create", f"after-{step}").code == 0
    if step == "confirmed":
        assert row["verdict"] == "good"
        assert box("rollback", str(before["number"])).code == 0
        forget(box, row["number"])


def test_refusals_are_named(box: CliBox) -> None:
    """A tag, a generation that runs or is pinned, one that is not there."""
    number = current(box)["number"]
    cases = {
        ("upgrade", "--to", "agentbox:latest"): "it is a tag",
        ("generations", "prune", str(number)): "it is the one that runs",
        ("rollback", str(number)): "it is the one that runs",
        ("rollback", "99"): "there is no record of it",
    }
    for words, why in cases.items():
        ran = box(*words)
        assert ran.code == 2
        assert why in ran.error()[0]
    assert box("generations", "pin", "1").code == 0
    pinned = box("generations", "prune", "1")
    assert pinned.code == 2
    assert "pinned" in pinned.error()[0] or "runs" in pinned.error()[0]
    assert box("generations", "pin", "1", "--remove").code == 0


@pytest.mark.sampled(3, family="pages that are played")
def test_the_page_is_what_is_typed(box: CliBox) -> None:
    """docs/howto/upgrade-and-roll-back.md, its commands in order, after a change of the manifest
    that needs a new container."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert [line.split()[1] for line in lines] == [
        "generations",
        "generations",
        "upgrade",
        "upgrade",
        "rollback",
    ]
    before = current(box)["number"]
    box.write(f"{QUICK}resources.stop_seconds = 33\n")
    for line in lines:
        ran = box(*line.replace("show 1", f"show {before}").split()[1:], timeout=240)
        assert ran.code == 0, ran.err
        if line.endswith("--check"):
            assert "recreate: resources.stop_seconds" in ran.out
            assert current(box)["number"] == before
        elif line.endswith("upgrade"):
            assert current(box)["number"] > before
    assert current(box)["number"] == before
    box.write(QUICK)


def test_an_unchanged_box_is_left_alone(box: CliBox) -> None:
    """`upgrade` and `up` of the same inputs make no generation and stop nothing."""
    rows, boot = len(generations(box)["generations"]), box.status()["boot_id"]
    assert "no new generation is needed" in box("upgrade").out
    box.up(*UP)
    assert box.status()["boot_id"] == boot
    assert len(generations(box)["generations"]) == rows


def test_a_box_that_does_not_run_is_not_upgraded(box: CliBox) -> None:
    """What was killed would be old and new at once; `up` starts it, and no record is lost."""
    before = generations(box)
    os.kill(box_record(box)["pid"], signal.SIGKILL)
    refused = box("upgrade")
    assert refused.code == 1
    assert "it does not run" in refused.error()[0]
    assert generations(box) == before
    box.up(*UP)
    assert current(box)["number"] == before["current"]


def forget(box: CliBox, number: int) -> None:
    """A generation whose release goes with its test: none goes back to it."""
    assert box("generations", "prune", str(number)).code == 0


def box_record(box: CliBox) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((box.state / "record.json").read_text())
    return found


def events(box: CliBox) -> list[dict[str, Any]]:
    ran = box("--json", "events", "tail", "-n", "500")
    return [json.loads(line) for line in ran.out.splitlines()]
