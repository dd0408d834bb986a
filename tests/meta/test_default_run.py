"""The default run never leaves out the last test of a clause, an RC or an id that needs a mutant."""

import re
import subprocess
import sys
from collections import Counter

import pytest
from contract.test_clauses import LAST, LATER

from agentbox.core.paths import CHECKOUT

SUITES = ("tests/contract", "tests/mesh", "tests/runtime-contract")
LEFT_OUT = re.compile(r"mark\.(sampled|transport)\b")


@pytest.fixture(scope="module")
def default_run() -> list[str]:
    """Ids of the tests of these suites that run without `--full`."""
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*argv, *SUITES], cwd=CHECKOUT, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_every_clause_runs_by_default(default_run: list[str]) -> None:
    """Each of each slot, in at least one class."""
    found = {match[1] for name in default_run if (match := re.search(r"::test_([A-Z]\d\d)_", name))}
    wanted = {f"{letter}{n:02}" for letter, last in LAST.items() for n in range(1, last + 1)}
    assert wanted - set(LATER) <= found


def test_every_rc_runs_by_default(default_run: list[str]) -> None:
    """Each file of the runtime contract has a test that is in no sample."""
    files = sorted((CHECKOUT / "tests/runtime-contract").glob("test_rc_*.py"))
    assert len(files) > 30
    counts = Counter(name.partition("::")[0] for name in default_run)
    assert [path.name for path in files if not counts[str(path.relative_to(CHECKOUT))]] == []
    assert [path.name for path in files if LEFT_OUT.search(path.read_text())] == []


def test_every_id_that_needs_one_has_a_mutant_by_default(default_run: list[str]) -> None:
    """One of each; the list is that of the mutants' own test."""
    text = (CHECKOUT / "tests/runtime-contract/mutants/test_mutants.py").read_text()
    needed = set(re.findall(r'"(RC-\d{3})"', text))
    assert len(needed) > 8
    found = {match[1] for name in default_run if (match := re.search(r"fails\[(RC-\d{3})-", name))}
    assert needed <= found
