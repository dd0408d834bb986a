"""One real API (and agent-host) for the tests of a module; a test that breaks it starts its own."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api_box import TOKEN, ApiBox

from agentbox.client import BoxClient
from agentbox.host.engines.state import BoxRecord, BoxState


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


@pytest.fixture
def mcp_command(
    box: ApiBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """The words of `agentbox mcp` for the running box."""
    name = "mcp-of-a-test"
    manifest = tmp_path / "agentbox.toml"
    manifest.write_text(f'[meta]\nschema_version = 1\nname = "{name}"\n')
    state = BoxState(tmp_path / "state" / name)
    state.make()
    folder = str(state.compose_dir)
    state.save_record(BoxRecord(engine="docker", name=name, api_url=box.url, folder=folder))
    state.token_file.write_text(TOKEN)
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    words = [sys.executable, "-m", "agentbox", "--manifest", str(manifest), "mcp"]
    return lambda *options: [*words, *options]
