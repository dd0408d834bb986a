"""RC-025: judges are silent: linters, schemas and the reader of grants find nothing in any target of any golden manifest."""

from pathlib import Path

import pytest
from goldens import cases, given
from harness.judges import JUDGES
from rendered_page import PAGE, REFRESH, page

from agentbox.plan.render.files import write
from agentbox.plan.render.targets import ALL, render


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case.name))
def test_judges_are_silent(tmp_path: Path, case: Path, name: str) -> None:
    """Positive control: the targets exist, and each validator reports its mutant
    (mutants/of_text.py)."""
    written = write(render(ALL, given(case)), tmp_path)
    assert len(written) > 10
    assert JUDGES[name](tmp_path, given(case).plan) == []


def test_the_page_of_rendered_targets_is_fresh() -> None:
    """docs/rendered.md has the current output of the validators."""
    assert PAGE.read_text() == page(), f"stale: run `{REFRESH}`"
