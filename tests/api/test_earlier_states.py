"""This release restores a state of each release up to now: with equal answers."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from support.api_box import ApiBox
from support.filled_box import answers
from support.recorded_state import ANSWERS, STATES

from agentbox import __version__
from agentbox.api.known_stores import STORES
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.core.paths import Paths
from agentbox.restoring.restore import RestoreOptions, make_state

RELEASES = sorted(path.name for path in STATES.iterdir())


def test_this_release_has_one() -> None:
    """A release without a state of its own could not be restored by the next one."""
    assert __version__ in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_a_state_of_an_earlier_release_is_restored(release: str, tmp_path: Path) -> None:
    """Migrated forward, verified and served."""
    folder = tmp_path / "repository"
    shutil.copytree(STATES / release, folder)
    seen = json.loads((folder / ANSWERS).read_text())
    repository = ArchiveRepository(folder, None)
    head = repository.get("latest")
    assert repository.verify(head.id) == []
    assert head.release == release
    with tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as prefix:
        options = RestoreOptions(snapshot=head.id, box="box", members=head.members)
        with repository.open(head.id, ()) as members:
            made = make_state(Paths(Path(prefix)), members, options)
        assert made.stores == {name: len(STORES[name].migrations) for name in made.stores}
        assert {"beads/beads.db", "memory/memory.db", "secrets/access.db"} <= set(made.stores)
        with ApiBox(Path(prefix)) as box, box.client() as client:
            assert answers(client, seen["until"]) == seen["answers"]
            assert client.events.verify().ok
