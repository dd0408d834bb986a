"""A benchmark without its prerequisites prints a message, no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.ports import free_port

from agentbox.core.errors import ExitCode

BENCH = Path(__file__).resolve().parents[3] / "bench"
IMPORT = """
import runpy, sys, traceback
folder, *scripts = sys.argv[1:]
sys.path.insert(0, folder)
for script in scripts:
    try:
        runpy.run_path(script)
    except BaseException:
        print(script, traceback.format_exc())
"""


def run(tmp_path, name, *arguments, **env):
    """The script, for a user without a box."""
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": str(BENCH.parent)}
    return subprocess.run(
        [sys.executable, BENCH / f"{name}.py", *arguments], env={**os.environ, **home, **env}, capture_output=True, text=True, check=False
    )  # fmt: skip


@pytest.mark.parametrize("name", ["start", "footprint"])
def test_without_a_box(tmp_path, name):
    """What to do is in the second line."""
    done = run(tmp_path, name, "--runs", "1")
    assert done.returncode == ExitCode.NOT_RUNNING
    assert done.stderr.splitlines() == [
        "cannot reach the box agentbox: it is not running",
        "Start it: ./agentbox.sh up",
    ]


def test_each_finds_what_it_imports():
    """They are run seldom, and what they measure moves on."""
    scripts = sorted(map(str, BENCH.glob("*.py")))
    assert len(scripts) > 20
    done = subprocess.run([sys.executable, "-c", IMPORT, BENCH, *scripts], cwd=BENCH.parent, capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr + done.stdout


def test_where_nobody_answers(tmp_path):
    """Before any load is generated."""
    port = free_port()
    done = run(tmp_path, "livez", f"http://127.0.0.1:{port}")
    assert done.returncode == ExitCode.NOT_RUNNING
    assert (
        done.stderr
        == f"cannot measure http://127.0.0.1:{port}: nothing answers there (Connection refused)\n"
    )


def test_a_file_that_is_asked_for_has_every_sample(tmp_path):
    """One line for each claim; five digits for each sample."""
    code = f"""
import sys; sys.path.insert(0, {str(BENCH)!r})
from pathlib import Path
from measure import Claim, write_results
write_results("x", [Claim("a", "ms", [1 / 3] * 1000), Claim("b", "ms", [2.0])], Path("out.json"))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    text = (tmp_path / "out.json").read_text()
    first, second = json.loads(text)["claims"]
    assert (first["samples"], first["n"], second["p95"]) == ([0.33333] * 1000, 1000, 2.0)
    assert len(text.splitlines()) < 10


def test_results_in_git_have_a_histogram_and_no_samples(tmp_path):
    """`results/` has counts of 20 bins; `raw/`, which git ignores, has the samples."""
    code = f"""
import sys; sys.path.insert(0, {str(BENCH)!r})
from pathlib import Path
import measure
measure.RESULTS, measure.RAW = Path("results"), Path("raw")
measure.write_results("x", [measure.Claim("a", "ms", [float(n) for n in range(100)])])
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    (row,) = json.loads((tmp_path / "results/x.json").read_text())["claims"]
    assert (row["min"], row["p50"], row["p99"], row["max"]) == (0.0, 49.0, 98.0, 99.0)
    assert row["histogram"] == [5] * 20
    assert "samples" not in row
    raw = json.loads((tmp_path / "raw/x.json").read_text())
    assert raw["samples"] == {"a": [float(n) for n in range(100)]}
    assert "bench/raw/" in (BENCH.parent / ".gitignore").read_text().splitlines()


def test_a_part_that_is_measured_again_replaces_its_own_rows(tmp_path):
    """The others stay, with the host of the file; new ones have their own."""
    code = f"""
import sys; sys.path.insert(0, {str(BENCH)!r})
from pathlib import Path
import measure
from measure import Claim, write_results
measure.RESULTS, measure.RAW = Path("."), Path("raw")
out = Path("x.json")
write_results(
    "x",
    [
        Claim("a: one", "s", [1.0]),
        Claim("a: removed", "s", [1.0]),
        Claim("ab: one", "s", [2.0]),
    ],
)
out.write_text(out.read_text().replace('"at": "', '"at": "before '))
write_results("x", [Claim("a: one", "s", [3.0])], only="a:")
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    found = json.loads((tmp_path / "x.json").read_text())
    assert [(row["name"], row["median"]) for row in found["claims"]] == [
        ("ab: one", 2.0),
        ("a: one", 3.0),
    ]
    assert found["host"]["at"].startswith("before")
    assert not found["claims"][1]["host"]["at"].startswith("before")
