"""Ctrl-C, a closed terminal, or KILL at any moment of `up` leaves nothing that the next `up` cannot use."""

from __future__ import annotations

import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from cli_box import CliBox, end, wait_for
from told import Told

SEED = 20261121
HOWS = (
    ("Ctrl-C", signal.SIGINT, True),
    ("interrupt of the command alone", signal.SIGINT, False),
    ("closed terminal", signal.SIGHUP, True),
    ("KILL", signal.SIGKILL, False),
)
STAGES = ("validate", "fetch", "image", "start")


@pytest.fixture(scope="module")
def box(cli_box: CliBox) -> CliBox:
    cli_box.up()
    return cli_box


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("stage", "how"), tuple(zip(STAGES, random.Random(SEED).sample(HOWS, len(HOWS)), strict=True))
)
def test_up_can_be_cut_off(
    box: CliBox, tmp_path: Path, stage: str, how: tuple[str, signal.Signals, bool]
) -> None:
    """Interrupted after that stage, at a random moment: exit 130, one message and no traceback;
    then `up` and `run` work."""
    name, number, group = how
    dice = random.Random(f"{SEED} {stage}")
    box.write(f"resources.pids = {dice.randint(2100, 2400)}\n")
    out = tmp_path / "out"
    up = box.begin("up", "--yes", *(["--build"] if stage == "fetch" else []), out=out)
    said = out.with_suffix(".err")
    wait_for(lambda: f"  {stage} " in said.read_text() or None, 60, f"stage {stage}")
    with suppress(subprocess.TimeoutExpired):
        up.wait(dice.uniform(0, 1.2))
    end(up, number, group=group)
    code = up.wait(60)
    assert code in ((-signal.SIGKILL,) if number is signal.SIGKILL else (130, 0)), (
        name,
        said.read_text(),
    )
    assert "Traceback" not in said.read_text()
    if code == 130:
        assert said.read_text().splitlines()[-1] == "agentbox: interrupted"
    box.up()
    assert box("run", "--", "echo", "fine").out == "fine\n"


def test_two_at_once_are_told_apart(box: CliBox, told: Told, tmp_path: Path) -> None:
    """The second ends with exit 7 and the first one's pid; the first is not disturbed."""
    box.write("resources.pids = 2401\n")
    out = tmp_path / "out"
    first = box.begin("up", "--yes", out=out)
    wait_for(
        lambda: "  engine " in out.with_suffix(".err").read_text() or None,
        30,
        "the first holds the box",
    )
    second = box("up", "--yes")
    assert second.code == 7
    assert f"(pid {first.pid})" in second.error()[0]
    told("Another `up` is at work", box, second)
    assert first.wait(60) == 0


def test_ctrl_c_ends_a_run(box: CliBox, tmp_path: Path) -> None:
    """The task is cancelled, its whole tree ends, exit 130."""
    out = tmp_path / "out"
    run = box.begin(
        "run", "--", "sh", "-c", "trap '' INT; sleep 4444 & echo started; wait", out=out
    )
    wait_for(lambda: out.read_bytes() or None, 30, "the agent runs")
    end(run, signal.SIGINT, group=True)
    assert run.wait(30) == 130
    assert box("--json", "task", "list").json[-1]["state"] == "cancelled"
    wait_for(
        lambda: box("shell", "--", "pgrep", "-c", "sleep").out.strip() == "0" or None,
        15,
        "the tree has ended",
    )
