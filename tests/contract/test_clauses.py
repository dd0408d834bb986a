"""Each clause of a slot (O19: ADR 0026) that belongs to a shipped class has a test, and each test of a suite cites a clause."""

import ast
import re
from pathlib import Path

import pytest
from agentbox_testkit.contracts.beads import BeadsContract
from agentbox_testkit.contracts.common import CommonContract
from agentbox_testkit.contracts.events import EventsContract
from agentbox_testkit.contracts.memory import MemoryContract
from agentbox_testkit.contracts.orchestrator import OrchestratorContract
from agentbox_testkit.contracts.pods import PodsContract

SUITES = {
    "C": CommonContract,
    "B": BeadsContract,
    "M": MemoryContract,
    "P": PodsContract,
    "V": EventsContract,
    "O": OrchestratorContract,
}
LAST = {"C": 11, "B": 17, "M": 14, "P": 16, "V": 17, "O": 19}

# Clauses of classes that are not shipped yet; the row is removed when its class exists.
LATER = {
    "P16": "solid-oidc, a way for pods external-solid to log in",
}
# Clauses whose test is not in the suite itself, and where it is.
ELSEWHERE = {
    "B16": "tests/contract/test_beads_external_http.py: what a lost reply does, over a relay that loses them",
    "C09": "each implementation's own file, which knows what an older store is",
    "B17": "tests/contract/test_beads_external_pg.py: two boxes on one database",
    "M13": "tests/contract/test_memory_external_pg.py: the schema of a shared database",
    "M14": "tests/contract/test_memory_external_pg.py: its graph of vectors",
    "M12": "tests/contract/test_memory_local_sqlite.py: how the tables of SQLite are filled",
    "P10": "tests/contract/test_pods_local_fs.py: only files in a folder can be links",
    "P13": "tests/contract/test_pods_external_solid.py: how a Solid server is spoken to",
    "P14": "tests/contract/test_pods_external_solid.py: how it lists",
    "P15": "tests/contract/test_pods_external_solid.py: what it cannot patch",
    "P12": "tests/contract/test_pods_local_fs.py: only a folder can be edited by hand",
    "V14": "tests/contract/test_events_delivery.py: a sink that is away",
    "V15": "tests/contract/test_events_delivery.py and test_events_delivery_forms.py: what is sent, and again",
    "V17": "tests/contract/test_events_delivery_forms.py: what a sink refuses",
    "C10": "tests/contract/test_off.py",
    "O16": "tests/contract/test_orchestrator_child.py: the child and its pipes",
    "O17": "tests/contract/test_orchestrator_child.py: replies late, unknown, doubled, garbled or never",
    "O18": "tests/contract/test_orchestrator_child.py: the greeting and each method, spoken by hand",
}


def cited(suite: type) -> set[str]:
    """The clauses that the tests of a suite cite."""
    names = [name for name in dir(suite) if name.startswith("test")]
    found = [re.fullmatch(r"test_([A-Z]\d\d)_\w+", name) for name in names]
    assert all(found), (
        f"cites no clause: {[name for name, match in zip(names, found, strict=True) if not match]}"
    )
    return {match[1] for match in found if match}


@pytest.mark.parametrize("letter", ["B", "M", "P", "V", "O"])
def test_every_clause_has_a_test(letter):
    """Those of the slot that are not of a later class."""
    wanted = (
        {f"{letter}{number:02d}" for number in range(1, LAST[letter] + 1)}
        - set(LATER)
        - set(ELSEWHERE)
    )
    assert wanted <= cited(SUITES[letter])


@pytest.mark.parametrize("letter", ["B", "M", "P", "V"])
def test_every_common_clause_has_a_test(letter):
    """In the common suite, or in the suite of each slot."""
    wanted = {f"C{number:02d}" for number in range(1, LAST["C"] + 1)} - set(ELSEWHERE)
    assert wanted <= cited(SUITES[letter]) | cited(CommonContract)


def test_no_clause_is_both_later_and_tested():
    """A row of LATER is removed when its tests exist."""
    tested = set().union(*(cited(suite) for suite in SUITES.values()))
    assert tested & set(LATER) == set()


def test_no_test_cites_an_unknown_clause():
    """The clauses end where `LAST` says."""
    known = {
        f"{letter}{number:02d}" for letter, last in LAST.items() for number in range(1, last + 1)
    }
    assert set().union(*(cited(suite) for suite in SUITES.values())) <= known


@pytest.mark.parametrize(
    "suite", [BeadsContract, MemoryContract, PodsContract, EventsContract, OrchestratorContract]
)
def test_each_suite_runs_whole_by_default(suite):
    """At least one implementation is neither sampled nor a mere transport, so that each clause is tried on it by every run."""
    classes = [
        node
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
        and suite.__name__ in [ast.unparse(base) for base in node.bases]
    ]
    whole = [
        node.name
        for node in classes
        if not re.search("sampled|transport", "".join(map(ast.unparse, node.decorator_list)))
    ]
    assert whole
    assert len(whole) < len(classes), "the mark is not found"
