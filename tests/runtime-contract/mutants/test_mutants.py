"""The contract's tests detect what they are for: each predicate fails on a box that is broken where
it checks. Mutants of the other ids do not exist yet."""

import re
from collections.abc import Callable

import pytest
from harness.container import DockerBox

from mutants import of_boot, of_compose
from mutants.mutant import Mutant

MUTANTS = (*of_boot.MUTANTS, *of_compose.MUTANTS)
NEEDED = {
    "RC-003",
    "RC-004",
    "RC-005",
    "RC-008",
    "RC-009",
    "RC-011",
    "RC-013",
    "RC-015",
    "RC-016",
    "RC-028",
}


def test_each_id_has_a_mutant() -> None:
    """None of the ids that need one is without; no two have one name."""
    assert {mutant.rc for mutant in MUTANTS} >= NEEDED
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.timed
@pytest.mark.sampled(8, each=("mutant.rc",))
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_predicate_fails(docker_box: Callable[..., DockerBox], mutant: Mutant) -> None:
    """For the reason that was planted, and for no other."""
    box = docker_box(**mutant.options)
    mutant.prepare(box)
    with pytest.raises(AssertionError) as failed:
        mutant.sees(box)
    assert re.search(mutant.says, str(failed.value)), f"failed for another reason: {failed.value}"
