"""Pages that name tests name tests that exist."""

import re
from functools import cache

import pytest

from agentbox.core.paths import CHECKOUT

PAGES = ("docs/security.md", "docs/attack.md")
NAMED = re.compile(r"`(?:[\w/.]*::)?(test_\w+)`")


@cache
def defined() -> frozenset[str]:
    paths = [
        *(CHECKOUT / "tests").rglob("*.py"),
        *(CHECKOUT / "testkit/agentbox_testkit/contracts").rglob("*.py"),
    ]
    found = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)
    return frozenset(name for path in paths for name in found.findall(path.read_text()))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    """By the name of its function; a named file exists too."""
    text = (CHECKOUT / page).read_text()
    names = set(NAMED.findall(text))
    assert len(names) >= 10
    assert names - defined() == set()
    for name in re.findall(r"`((?:tests/)?[\w/]*test_\w+\.py)`", text):
        assert list((CHECKOUT / "tests").rglob(name.rpartition("/")[2])), name
