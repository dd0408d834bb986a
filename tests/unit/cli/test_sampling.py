"""Sampling and distribution of tests: by a printed seed, at least one per family, slowest file first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scheduling import _GROUPS, HeaviestFirst

from agentbox.core.paths import CHECKOUT

TESTS = """
import pytest
@pytest.mark.sampled(8)
@pytest.mark.parametrize("n", range(40))
def test_many(n): pass
@pytest.mark.sampled(8, each=("engine",))
@pytest.mark.parametrize("engine", ["docker", "process"])
@pytest.mark.parametrize("n", range(3))
def test_engines(n, engine): pass
def test_unmarked(): pass
class Suite:
    def test_a(self): pass
    def test_b(self): pass
    def test_c(self): pass
@pytest.mark.sampled(3)
class TestElsewhere(Suite):
    def test_own(self): pass
class TestWhole(Suite): pass
class Clauses(Suite):
    def test_line(self): pass
    test_line.transport = True
@pytest.mark.transport
class TestFurther(Clauses):
    def test_own(self): pass
FAMILY = pytest.mark.sampled(4, family="second engine")
@pytest.mark.parametrize("second", ["first", pytest.param("second", marks=FAMILY)])
@pytest.mark.parametrize("n", range(2))
def test_both(n, second): pass
@pytest.mark.parametrize("second", ["first", pytest.param("second", marks=FAMILY)])
@pytest.mark.parametrize("n", range(2))
def test_both_again(n, second): pass
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    made = tmp_path / "test_matrix.py"
    made.write_text(TESTS)
    return made


def collected(matrix: Path, *words: str, of: str = "") -> list[str]:
    """The names of what would run."""
    return [
        line.partition("::")[2] for line in said(matrix, *words, of=of).splitlines() if "::" in line
    ]


def said(matrix: Path, *words: str, of: str = "") -> str:
    """The output of pytest."""
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "sampling",
        "-p",
        "no:cacheprovider",
    ]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "tests" / "tools")}
    marks = ["-o", "markers=sampled\ntransport", f"--rootdir={matrix.parent}"]
    done = subprocess.run(
        [*argv, *marks, *words, f"{matrix}{of}"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_sample_is_of_its_seed_and_leaves_no_family_out(matrix: Path) -> None:
    """One in eight cases; one for each engine; one in three of what a class inherits, all that is its own."""
    found = collected(matrix, "--sample-seed=a")
    assert found == collected(matrix, "--sample-seed=a")
    assert "sample: --sample-seed=a " in said(matrix, "--sample-seed=a")
    assert found != collected(matrix, "--sample-seed=b")
    assert len([name for name in found if "test_many" in name]) == 5
    assert sorted(name.partition("-")[2] for name in found if "test_engines" in name) == [
        "docker]",
        "process]",
    ]
    assert len([name for name in found if name.startswith("TestElsewhere")]) == 2
    assert {
        "test_unmarked",
        "TestElsewhere::test_own",
        "TestWhole::test_a",
        "TestWhole::test_b",
    } <= set(found)


def test_a_family_is_of_several_tests(matrix: Path) -> None:
    """One in four of all that name it; those without the mark all run."""
    found = [name for name in collected(matrix) if "test_both" in name]
    assert len([name for name in found if name.endswith("second]")]) == 1
    assert len([name for name in found if name.endswith("first]")]) == 4


def test_a_further_transport_runs_what_depends_on_it(matrix: Path) -> None:
    """Of what its class inherits; and what it defines itself."""
    found = [name for name in collected(matrix) if name.startswith("TestFurther")]
    assert found == ["TestFurther::test_line", "TestFurther::test_own"]


def test_everything_runs_when_it_is_asked_for(matrix: Path) -> None:
    """With `--full`, with `-k`, or named itself."""
    assert len(collected(matrix, "--full")) == 40 + 6 + 1 + 4 + 3 + 5 + 8
    assert len(collected(matrix, "-k", "test_many")) == 40
    assert len(collected(matrix, of="::test_many")) == 40


def test_the_heaviest_file_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its stored seconds; a file that has none, by its number of tests."""
    monkeypatch.setattr(HeaviestFirst, "_seconds", {"light.py": 1.0, "heavy.py": 9.0})
    scheduler = object.__new__(HeaviestFirst)
    counts = {"light.py": 90, "heavy.py": 1, "new.py": 20}
    scheduler.workqueue = {
        file: {f"{file}::test_{n}": False for n in range(count)} for file, count in counts.items()
    }
    assert sorted(scheduler.workqueue, key=scheduler._cost, reverse=True) == [
        "heavy.py",
        "new.py",
        "light.py",
    ]


def test_files_that_share_a_server_are_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their seconds are added, and one process gets them; the files exist and use the server."""
    names = (
        "tests/contract/test_pods_external_solid.py",
        "tests/contract/test_pods_solid_faults.py",
    )
    monkeypatch.setattr(HeaviestFirst, "_seconds", {names[0]: 5.0, names[1]: 3.0})
    scheduler = object.__new__(HeaviestFirst)
    scopes = {scheduler._split_scope(f"{name}::test_one") for name in names}
    assert len(scopes) == 1
    (scope,) = scopes
    scheduler.workqueue = {scope: {f"{name}::test_one": False for name in names}}
    assert scheduler._cost(scope) == 8.0
    assert scheduler._split_scope("tests/api/test_tasks.py::test_one") == "tests/api/test_tasks.py"
    for file, group in _GROUPS.items():
        server = "postgres" if group.endswith("pg") else "solid"
        assert server in (CHECKOUT / file).read_text(), file
