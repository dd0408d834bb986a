"""A strict suite allows skips with a reason about the machine, and no others."""

import os
import subprocess
import sys
from pathlib import Path

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.suites.report import read_result

CONFTEST = """
import pytest
from skipping import no_other_skip
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    no_other_skip(report, "a suite")
    return report
"""
TESTS = """
import pytest
from skipping import machine_lacks
@pytest.fixture
def moon(): machine_lacks("a moon, which tides need")
def test_tides(moon): pass
def test_waves(): machine_lacks("a sea")
def test_not_today(): pytest.skip("not today")
@pytest.mark.skip(reason="never")
def test_never(): pass
def test_holds(): pass
"""


def test_only_a_declared_skip_is_one(tmp_path: Path) -> None:
    """In a fixture or a test; it is reported by name and reason. Another, called or marked, is a
    failure that names it."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_all.py").write_text(TESTS)
    report = tmp_path / "report.xml"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
        f"--junit-xml={report}",
    ]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "tests" / "tools")}
    done = subprocess.run(
        [*argv, "-o", "junit_family=xunit1", str(tmp_path)],
        env=env,
        capture_output=True,
        check=False,
    )
    result = read_result("all", [done.returncode], 1.0, report, None)
    assert [line.partition("::")[2] for line in result.skipped] == [
        "test_tides: this machine lacks a moon, which tides need",
        "test_waves: this machine lacks a sea",
    ]
    today, never = sorted(result.failed, reverse=True)
    assert "skipped in a suite: " in today
    assert "not today" in today
    assert "skipped in a suite: " in never
    assert "never" in never
    assert not result.passed
