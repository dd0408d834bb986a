"""Each layer of an agent's confinement has an effect of its own: without it, cases of the suite
succeed. docs/attack.md lists them."""

from collections.abc import Mapping

import pytest
from support.attack_report import (
    SHARED,
    TARGET,
    fallen,
    parse_page,
    stable_part,
    states_without,
)
from support.disabled_layers import LAYERS

# The result of a call that the filter alone refuses depends on the host: its sysctls, its modules, its own permissions.
OF_THE_HOST = ("calls.", "files.device")


@pytest.fixture(scope="module")
def shown() -> Mapping[str, Mapping[str, str]]:
    """The page: by layer, the cell of each line."""
    return parse_page(TARGET.read_text())


@pytest.mark.sampled(3)  # a box of its own each, and every attack that shares an agent
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_is_off_is_missed(layer: str, shown: Mapping[str, Mapping[str, str]]) -> None:
    """Cases succeed without it, and they are those that the page lists, wherever the host has no
    influence."""
    found, page = (
        fallen(states_without(layer)),
        {name for name, cell in shown[layer].items() if "falls" in cell},
    )
    compared = {line.name for line in SHARED if not line.name.startswith(OF_THE_HOST)}
    assert found & compared == page & compared
    assert page & compared, "this layer would be missed by nobody"


def test_the_page_has_every_line() -> None:
    """Title, answers and tests of each, in order. Refresh: python -m support.attack_report"""
    text = TARGET.read_text()
    assert stable_part(text) == stable_part(None)
    assert set(parse_page(text)) == set(LAYERS)
