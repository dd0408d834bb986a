"""The test suite of a published package runs in the box, on a directory of the operator's, as an
agent. docs/howto/run-a-test-suite.md shows the same, with its output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_box import CliBox

# 2,300 tests that need the standard library only; its source distribution has them.
PACKAGE = "docutils==0.23"
FOLDER = "docutils-0.23"
SUITE = ("run", "--cwd", f"/workspace/{FOLDER}", "--", "python3", "test/alltests.py")
BROKEN = "    width -= len(find_combining_chars(text))\n"
AT_LEAST = 2000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the unpacked source distribution, downloaded by name."""
    folder = tmp_path_factory.mktemp("project")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
    ]
    done = subprocess.run(
        [*pip, "--no-binary", ":all:", "--dest", str(folder), PACKAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    archive = next(folder.glob("*.tar.gz"))
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder), "--no-same-owner"], check=True)
    archive.unlink()
    return folder


@pytest.fixture(scope="module")
def box(cli_box: CliBox, project: Path) -> CliBox:
    """A ready box whose workspace is that directory."""
    cli_box.up("--project", str(project))
    return cli_box


def summary(text: str) -> tuple[int, str]:
    """How many tests ran, and unittest's verdict."""
    ran = re.search(r"^Ran (\d+) tests in", text, re.MULTILINE)
    verdict = re.search(r"^(OK|FAILED)(?: \((.*)\))?$", text, re.MULTILINE)
    assert ran is not None, text[-2000:]
    assert verdict is not None, text[-2000:]
    return int(ran[1]), verdict[0]


def test_one_broken_line_comes_through(box: CliBox, project: Path) -> None:
    """One line removed from the source: the suite's exit code and its report reach the terminal."""
    source = project / FOLDER / "docutils/utils/__init__.py"
    text = source.read_text()
    assert text.count(BROKEN) == 1
    source.write_text(text.replace(BROKEN, ""))
    ran = box(*SUITE)
    source.write_text(text)
    count, verdict = summary(ran.out)
    assert (ran.code, verdict.split()[0]) == (1, "FAILED")
    assert count >= AT_LEAST
    assert "FAIL: test_column_width" in ran.out
    assert "failed: exit code 1" in ran.err
    task = box("--json", "task", "list").json[-1]
    assert (task["state"], task["exit"]["code"]) == ("failed", 1)


def test_a_real_test_suite_is_green(box: CliBox) -> None:
    """With the line put back: exit 0, more than two thousand tests, and the task is stored as
    succeeded."""
    ran = box(*SUITE)
    count, verdict = summary(ran.out)
    assert (ran.code, verdict.split()[0]) == (0, "OK"), ran.out[-2000:]
    assert count >= AT_LEAST
    task = box("--json", "task", "list").json[-1]
    assert (task["state"], task["exit"]["code"]) == ("succeeded", 0)


def test_the_journal_tells_what_ran(box: CliBox) -> None:
    """Each of the two runs stands in the journal with its beginning and its end, and the chain
    verifies."""
    lines = box("--json", "events", "tail", "-n", "1000").out.splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert (kinds.count("agent.started"), kinds.count("agent.exited")) == (2, 2)
    assert box("events", "verify").code == 0


def test_what_the_suite_wrote_is_taken_over(box: CliBox, project: Path) -> None:
    """None of it is in the project until the operator commits it; then its owner can read and
    remove it."""
    report = project / FOLDER / "alltests.out"
    assert not report.exists()
    waiting = [one["agent_id"] for one in box("--json", "review", "list").json]
    assert len(waiting) == 2
    assert "alltests.out" in box("review", "show", "--no-diff", waiting[-1]).out
    assert box("review", "commit", waiting[-1]).code == 0
    assert "Ran " in report.read_text()
    report.unlink()
