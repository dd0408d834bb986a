"""A real box below a prefix, and a port that nothing uses."""

from collections.abc import Iterator

import pytest

from agentbox.testing.ports import free_port
from agentbox.testing.prefix_box import PrefixBox


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def box() -> Iterator[PrefixBox]:
    with PrefixBox() as made:
        yield made
