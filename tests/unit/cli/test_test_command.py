"""`agentbox test`: its suites, parallel execution and reports."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.suites import report
from agentbox.host.cli.suites.catalogue import SUITES, Suite, lanes, timed_suites
from agentbox.host.cli.suites.runner import Runner

# A suite that takes longer to clean up than a command that is merely killed would give it.
SUITE = """
import pathlib, sys, time
begun, cleared = (pathlib.Path(name) for name in sys.argv[1:])
try:
    begun.write_text("now")
    time.sleep(60)
finally:
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        time.sleep(0.05)
    cleared.touch()
"""
COMMAND = """
import pathlib, sys
from agentbox.host.cli.suites.catalogue import Suite
from agentbox.host.cli.suites.runner import Runner
from agentbox.host.engines.interrupts import unify_signals
unify_signals()
folder = pathlib.Path(sys.argv[1])
lanes = [[Suite(name, programs=(("python", *sys.argv[2:], str(folder / f"{name}-begun"), str(folder / f"{name}-cleared")),))]
         for name in ("one", "two")]
try:
    Runner(folder / "reports", lambda result: None).run(lanes)
except KeyboardInterrupt:
    sys.exit(130)
"""
SHOW_IGNORED = "import sys; print(next(line for line in open('/proc/self/status') if line.startswith('SigIgn')).split()[1])"
RUN = """
import pathlib, sys
from agentbox.host.cli.suites.catalogue import Suite
from agentbox.host.cli.suites.runner import Runner
Runner(pathlib.Path(sys.argv[1]), lambda result: None).run([[Suite("one", programs=(("python", "-c", sys.argv[2]),))]])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_suites_clear_up_first(tmp_path: Path, number: signal.Signals) -> None:
    """Each lane's is reported once, however the command was interrupted, and awaited."""
    for name in ("one", "two"):
        os.mkfifo(tmp_path / f"{name}-begun")
    argv = [sys.executable, "-c", COMMAND, str(tmp_path), "-c", SUITE]
    with subprocess.Popen(argv) as command:
        for name in ("one", "two"):
            assert (tmp_path / f"{name}-begun").read_text() == "now"
        command.send_signal(number)
        assert command.wait(30) == 130
    for name in ("one", "two"):
        assert (tmp_path / f"{name}-cleared").exists()


def test_ignored_signals_are_not_inherited(tmp_path: Path) -> None:
    """Started in the background or under nohup, the command's suites have the default of INT, HUP and QUIT."""
    words = ["sh", "-c", 'trap "" INT HUP QUIT TERM; exec "$@"', "sh", sys.executable, "-c"]
    ran = subprocess.run(
        [*words, RUN, str(tmp_path), SHOW_IGNORED], capture_output=True, text=True, check=True
    )
    plain = subprocess.run([*words, SHOW_IGNORED], capture_output=True, text=True, check=True)
    ignored = {
        1 << number - 1 for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
    }
    assert all(int(plain.stdout, 16) & bit for bit in ignored)
    assert not any(int(ran.stdout, 16) & bit for bit in ignored)


def test_pytest_restores_ignored_signals(tmp_path: Path) -> None:
    """A run of pytest itself, with INT, HUP and QUIT ignored, starts programs that a signal ends."""
    words = [
        "sh",
        "-c",
        'trap "" INT HUP QUIT; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    own = f"{Path(__file__)}::test_programs_of_this_suite_obey_signals"
    done = subprocess.run([*words, own], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_programs_of_this_suite_obey_signals() -> None:
    """None of INT, HUP and QUIT is ignored in a program that a test starts."""
    shown = subprocess.run(
        [sys.executable, "-c", SHOW_IGNORED], capture_output=True, text=True, check=True
    )
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        assert not int(shown.stdout, 16) & 1 << number - 1, number.name


def test_suites_keep_compiled_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment of the command says: else each program compiles them again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    asked = ("python", "-c", "import sys; sys.exit(sys.dont_write_bytecode)")
    (result,) = Runner(tmp_path, lambda result: None).run([[Suite("one", programs=(asked,))]])
    assert result.passed


def test_what_failed_or_was_skipped_is_named_at_the_end(tmp_path: Path) -> None:
    """A test that fails, one whose fixture does and one that is skipped, each with its reason;
    timed ones are not in it."""
    (tmp_path / "test_three.py").write_text(
        "import pytest\n@pytest.fixture\ndef broken(): raise ValueError('no server')\n"
        "def test_holds(): assert True\ndef test_fails(): assert 1 == 2, 'one is not two'\ndef test_errs(broken): pass\n"
        "@pytest.mark.skip(reason='this machine has no moon')\ndef test_moon(): pass\n"
        "@pytest.mark.timed\ndef test_soon(): pass\n"
    )
    seen: list[str] = []
    suite = Suite(
        "three", (str(tmp_path),), options=("-p", "no:cacheprovider", "-o", "markers=timed")
    )
    (result,) = Runner(tmp_path, lambda result: seen.append(result.suite)).run([[suite]])
    assert not result.passed
    assert seen == ["three"]
    errs, fails = sorted(result.failed)
    assert "test_three.py::test_errs: " in errs
    assert "no server" in errs
    assert "test_three.py::test_fails: AssertionError: one is not two" in fails
    (skipped,) = result.skipped
    assert skipped.endswith("test_three.py::test_moon: this machine has no moon")
    assert result.table_row.split() == [
        "three",
        "FAILED",
        *result.table_row.split()[2:3],
        "1",
        "2",
        "1",
    ]
    assert json.loads(json.dumps(result.document()))["failed"] == result.failed
    assert [file for file in report.file_durations([result]) if file.endswith("test_three.py")] in (
        [],
        [result.cases[0].file],
    )


def test_each_folder_of_tests_is_in_one_suite() -> None:
    """None is left out, none runs twice."""
    named = sorted(
        folder for suite in SUITES for folder in suite.directories if not folder.endswith(".py")
    )
    grant_set = {
        f"tests/{path.relative_to(CHECKOUT / 'tests').parts[0]}"
        for path in (CHECKOUT / "tests").rglob("test_*.py")
    }
    assert named == sorted(grant_set)


def test_files_left_to_another_suite_are_in_one() -> None:
    """What the runtime suite ignores, the suite of builds runs."""
    ignored = {
        word.removeprefix("--ignore=")
        for suite in SUITES
        for word in suite.options
        if word.startswith("--ignore=")
    }
    assert ignored == {
        folder for suite in SUITES for folder in suite.directories if folder.endswith(".py")
    }
    assert all((CHECKOUT / path).is_file() for path in ignored)


def test_an_inherited_test_is_of_the_file_that_inherits_it(tmp_path: Path) -> None:
    """Its id can be run, and has its class: many files inherit one suite."""
    node = "tests/contract/test_events_local_jsonl.py::TestLocalJsonl::test_C01_close_is_idempotent_and_leaves_nothing"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junit-xml={tmp_path}/report.xml",
        node,
    ]
    argv += ["-o", "junit_family=xunit1"]
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, check=False)
    result = report.read_result("contract", [done.returncode], 1.0, tmp_path / "report.xml", None)
    assert ([case.test_id for case in result.cases], result.passed) == ([node], True)
    assert list(report.file_durations([result])) in ([], [node.partition("::")[0]])


def test_suites_are_spread_over_lanes_in_order() -> None:
    """Each is in one lane; what a suite waits for is in another lane or before it."""
    found = lanes(SUITES)
    assert sorted(suite.name for lane in found for suite in lane) == sorted(
        suite.name for suite in SUITES
    )
    for lane in found:
        names = [suite.name for suite in lane]
        assert all(suite.after not in names[n:] for n, suite in enumerate(lane))


def test_a_suite_waits_for_the_one_that_it_needs(tmp_path: Path) -> None:
    """In another lane, however long that takes."""
    slow = "import pathlib, sys, threading; threading.Event().wait(0.5); pathlib.Path(sys.argv[1]).touch()"
    needs = "import pathlib, sys; sys.exit(not pathlib.Path(sys.argv[1]).exists())"
    mark = str(tmp_path / "mark")
    first = Suite("first", programs=(("python", "-c", slow, mark),), lane="a")
    second = Suite("second", programs=(("python", "-c", needs, mark),), lane="b", after="first")
    results = Runner(tmp_path, lambda result: None).run([[second], [first]])
    assert [result.passed for result in results] == [True, True]


def test_timed_tests_have_a_suite_of_their_own() -> None:
    """Every file with the mark is in one, those of containers in one that runs alone; a suite without one has none."""
    waiting, boxes = timed_suites(SUITES)
    assert (boxes.workers, boxes.containers, waiting.containers) == (1, True, False)
    assert all(
        folder.startswith(("tests/runtime-contract/", "tests/e2e/")) for folder in boxes.directories
    )
    marked = subprocess.run(
        ["git", "grep", "-l", "-F", "@pytest.mark.timed", "--", "tests/*test_*.py"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(marked.stdout.split()) <= {*waiting.directories, *boxes.directories}
    assert timed_suites([suite for suite in SUITES if suite.name == "lint"]) == []
