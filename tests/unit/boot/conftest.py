"""A real box below a prefix, and a port that nothing uses."""

import socket
from collections.abc import Iterator

import pytest

from agentbox.testing.prefix_box import PrefixBox


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def box() -> Iterator[PrefixBox]:
    with PrefixBox() as made:
        yield made
