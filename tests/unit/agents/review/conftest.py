"""A lab of hostile repositories, with a launcher for all tests of a module."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from commit_lab import CommitLab

from agentbox.sandbox.launcher.client import LauncherClient


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommitLab]:
    launcher = LauncherClient()
    yield CommitLab(tmp_path_factory.mktemp("lab"), launcher)
    await launcher.close()


@pytest_asyncio.fixture(loop_scope="module")
async def branch(lab: CommitLab) -> AsyncIterator[tuple[str, Path]]:
    """The id of an agent and its copy of the workspace; its review is discarded at the end."""
    yield lab.begin()
    await lab.end()
