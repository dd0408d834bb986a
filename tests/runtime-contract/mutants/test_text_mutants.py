"""Each validator of RC-025 reports a planted error."""

import re
from pathlib import Path

import pytest
from goldens import HERE, given
from harness.judges import JUDGES

from agentbox.plan.render.files import write
from agentbox.plan.render.targets import ALL, render
from mutants.of_text import MUTANTS, TextMutant

CASE = HERE / "default"


def test_each_judge_has_a_mutant() -> None:
    """A validator that never reported anything may not work."""
    assert {mutant.judge for mutant in MUTANTS} == set(JUDGES)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_judge_speaks(tmp_path: Path, mutant: TextMutant) -> None:
    """Of what was planted, and the unchanged text is silent (RC-025 itself)."""
    write(render(ALL, given(CASE)), tmp_path)
    path = tmp_path / mutant.file
    before = path.read_text()
    path.write_text(before.replace(mutant.old, mutant.new, 1))
    assert path.read_text() != before
    said = "\n".join(JUDGES[mutant.judge](tmp_path, given(CASE).plan))
    assert re.search(mutant.says, said), f"said another thing: {said}"
