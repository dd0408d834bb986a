"""Each layer of an agent's confinement does something alone: without it, lines of the battery fall. docs/attack.md says which."""

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

# What becomes of a call that the filter alone refuses is for the host to say: its sysctls, its modules, its own rights.
OF_THE_HOST = ("calls.", "files.device")


@pytest.fixture(scope="module")
def shown() -> Mapping[str, Mapping[str, str]]:
    """The page: by layer, the cell of each line."""
    return parse_page(TARGET.read_text())


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_is_off_is_missed(layer: str, shown: Mapping[str, Mapping[str, str]]) -> None:
    """Lines fall without it, and they are those that the page names, wherever the host has no word in it."""
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
