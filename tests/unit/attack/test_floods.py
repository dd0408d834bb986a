"""A flood whose limit is off is noticed, and without all limits every flood succeeds.
docs/attack.md lists them."""

from collections.abc import Mapping

import pytest
from support.attack_report import FLOODS, TARGET, fallen, floods_without, parse_floods
from support.disabled_layers import BOUNDS


@pytest.fixture(scope="module")
def shown() -> Mapping[str, Mapping[str, str]]:
    """The page: by what is off, the cell of each flood."""
    return parse_floods(TARGET.read_text())


@pytest.mark.sampled(3)  # half a minute each, most of it spent waiting for detection
@pytest.mark.timed  # another bound is faster than a flood on a busy machine
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_limit_that_is_off_is_missed(bound: str, shown: Mapping[str, Mapping[str, str]]) -> None:
    """Those floods fall that the page names, and no other: the rest has a second layer, which stops it."""
    found = floods_without(bound)
    print(found)
    assert fallen(found) == fallen(shown[bound])
    assert fallen(found), "this bound would be missed by nobody"
    assert "unknown" not in found.values()


def test_without_all_of_them_every_flood_gets_through(
    shown: Mapping[str, Mapping[str, str]],
) -> None:
    """So each case is a flood, and the other columns list what stops it."""
    assert fallen(shown["all"]) == {line.name for line in FLOODS}
