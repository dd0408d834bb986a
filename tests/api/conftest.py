"""One real API (and agent-host) for the tests of a module; a test that breaks it starts its own."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api_box import ApiBox

from agentbox.client import BoxClient


@pytest.fixture(scope="module")
def prefix() -> Iterator[Path]:
    """A directory with a short name: the path of a unix socket has at most 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def box(prefix: Path) -> Iterator[ApiBox]:
    with ApiBox(prefix) as running:
        yield running


@pytest.fixture
def client(box: ApiBox) -> Iterator[BoxClient]:
    with box.client() as made:
        yield made


@pytest.fixture
def own_box() -> Iterator[Callable[..., ApiBox]]:
    """Starts boxes of this test's own."""
    folders: list[Path] = []
    boxes: list[ApiBox] = []

    def start(**changes: Any) -> ApiBox:
        folders.append(Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp")))
        made = ApiBox(folders[-1], **changes).__enter__()
        boxes.append(made)
        return made

    yield start
    for running in boxes:
        running.__exit__(None, None, None)
    for folder in folders:
        shutil.rmtree(folder)
