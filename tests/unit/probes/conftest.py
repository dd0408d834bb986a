"""A real box below a prefix, and a port that nothing uses."""

from collections.abc import Iterator

import pytest
from support.ports import free_port
from support.prefix_box import PrefixBox


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def box() -> Iterator[PrefixBox]:
    with PrefixBox() as made:
        yield made
