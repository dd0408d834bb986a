"""The default run never leaves out the last test of a clause, of an RC, of an engine on which an RC
differs, or of an id that needs a mutant."""

import re
import subprocess
import sys
from collections import Counter

import pytest
from contract.test_clauses import LAST, LATER

from agentbox.core.paths import CHECKOUT

SUITES = ("tests/contract", "tests/mesh", "tests/runtime-contract")
RC = re.compile(r"test_rc_(\d{3})_\w+\.py::")
ENGINE = re.compile(r"\[(docker|process)\b|::test_rc_\d{3}\w*_(docker|process)\b")
BY_ENGINE = {
    "docker": {
        *("001", "002", "005", "006", "008", "009", "010", "011", "012", "013", "014", "019"),
        *("020", "021", "026", "027", "028", "035"),
    },
    "process": {"001", "011", "012", "013", "014", "020", "026", "027", "035"},
}
"""Ids that keep a test of that engine in every run: docker for all that are tested on both, the
process engine where the box differs for the claim: who starts and bounds it, what it tells of
itself. All of RC-034 is about that engine."""


def collected(*arguments: str) -> list[str]:
    """Ids of the tests that pytest selects."""
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*argv, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture(scope="module")
def default_run() -> list[str]:
    """Ids of the tests of these suites that run without `--full`."""
    return collected(*SUITES)


@pytest.fixture(scope="module")
def in_no_sample() -> list[str]:
    """Ids of the tests of the runtime contract that run whatever the seed is."""
    return collected("tests/runtime-contract", "-m", "not sampled and not transport")


def test_every_clause_runs_by_default(default_run: list[str]) -> None:
    """Each of each slot, in at least one class."""
    found = {match[1] for name in default_run if (match := re.search(r"::test_([A-Z]\d\d)_", name))}
    wanted = {f"{letter}{n:02}" for letter, last in LAST.items() for n in range(1, last + 1)}
    assert wanted - set(LATER) <= found


def test_every_rc_runs_by_default(default_run: list[str], in_no_sample: list[str]) -> None:
    """Each file of the runtime contract has a test that is in no sample, which any seed runs."""
    files = sorted((CHECKOUT / "tests/runtime-contract").glob("test_rc_*.py"))
    assert len(files) > 30
    always = set(default_run) & set(in_no_sample)
    counts = Counter(name.partition("::")[0] for name in always)
    assert [path.name for path in files if not counts[str(path.relative_to(CHECKOUT))]] == []


def test_every_rc_runs_by_default_on_each_engine_that_differs(in_no_sample: list[str]) -> None:
    """As `BY_ENGINE` lists them."""
    found: dict[str, set[str]] = {"docker": set(), "process": set()}
    for name in in_no_sample:
        if (rc := RC.search(name)) and (engine := ENGINE.search(name)):
            found[engine[1] or engine[2]].add(rc[1])
    assert {name: ids - found[name] for name, ids in BY_ENGINE.items()} == {
        "docker": set(),
        "process": set(),
    }


def test_every_id_that_needs_one_has_a_mutant_by_default(default_run: list[str]) -> None:
    """One of each; the list is that of the mutants' own test."""
    text = (CHECKOUT / "tests/runtime-contract/mutants/test_mutants.py").read_text()
    needed = set(re.findall(r'"(RC-\d{3})"', text))
    assert len(needed) > 8
    found = {match[1] for name in default_run if (match := re.search(r"fails\[(RC-\d{3})-", name))}
    assert needed <= found
