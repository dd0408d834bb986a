"""The service that a chat writes to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.bot_api import BotApi


@pytest.fixture
def service() -> Iterator[BotApi]:
    with BotApi() as running:
        yield running
