"""The state directory of a box on the operator's machine."""

import os
import stat
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import write_atomically
from agentbox.host.engines.state import BoxRecord, BoxState, BuildStamp

RECORD = BoxRecord(engine="docker", name="b", api_url="http://127.0.0.1:9090")


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    """`record` returns what `remember` wrote."""
    state = BoxState(tmp_path / "b")
    state.make()
    state.save_record(RECORD)
    assert state.record() == RECORD
    assert state.running_record() == RECORD


def test_a_box_that_never_started_is_off(tmp_path: Path) -> None:
    """Without a record: None, and exit 8 where one is required."""
    state = BoxState(tmp_path / "b")
    assert state.record() is None
    with pytest.raises(AgentboxError) as caught:
        state.running_record()
    assert caught.value.exit_code is ExitCode.NOT_RUNNING
    assert "up" in caught.value.hint


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"engine": 1}', '{"no": "such"}'])
def test_a_damaged_record_counts_as_none(tmp_path: Path, damage: str) -> None:
    """A truncated file never stops `up`."""
    state = BoxState(tmp_path / "b")
    state.make()
    (state.directory / "record.json").write_text(damage)
    assert state.record() is None


def test_two_at_once_are_told_apart(tmp_path: Path) -> None:
    """The second holder gets exit 7 with the first one's pid; afterwards the lock is free."""
    state = BoxState(tmp_path / "b")
    with state.exclusive_lock():
        with pytest.raises(AgentboxError) as caught, BoxState(tmp_path / "b").exclusive_lock():
            pass
        assert caught.value.exit_code is ExitCode.BUSY
        assert str(os.getpid()) in caught.value.message
    with state.exclusive_lock():
        pass


def test_folder_and_token_are_private(tmp_path: Path) -> None:
    """0700 and 0600."""
    state = BoxState(tmp_path / "b")
    state.make()
    state.save_token("secret")
    assert stat.S_IMODE(state.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(state.token_file.stat().st_mode) == 0o600
    assert state.token() == "secret"


def test_forget_leaves_the_build(tmp_path: Path) -> None:
    """After `down` the box is off and the loaded image is still recorded."""
    state = BoxState(tmp_path / "b")
    state.make()
    stamp = BuildStamp("k", "sha256:1", "sha256:2", "agentbox:x", "sha256:3")
    state.add_build(stamp)
    state.save_record(RECORD)
    state.clear()
    assert state.record() is None
    assert state.build_stamp() == stamp


def built(number: int) -> BuildStamp:
    return BuildStamp(f"k{number}", f"sha256:{number}", "sha256:m", "agentbox:x", "sha256:p")


def test_the_last_five_builds_are_kept(tmp_path: Path) -> None:
    """Newest first, without duplicates; a dropped build is reported until it is removed."""
    state = BoxState(tmp_path / "b")
    state.make()
    assert (state.builds(), state.build_stamp()) == ([], None)
    for number in (0, 1, 2, 3, 4, 1, 5, 6):
        state.add_build(built(number))
    assert state.builds() == [built(number) for number in (6, 5, 1, 4, 3)]
    assert state.outdated_builds() == [built(2), built(0)]
    state.save_outdated_builds([built(0)])
    assert (len(state.builds()), state.outdated_builds()) == (5, [built(0)])


@pytest.mark.parametrize(
    "text", ["", "[]", '{"builds": [1]}', '{"builds": {}}', '{"builds": [{"key": 1}]}']
)
def test_a_damaged_list_of_builds_counts_as_none(tmp_path: Path, text: str) -> None:
    """The next build rewrites it."""
    state = BoxState(tmp_path / "b")
    state.make()
    (state.directory / "builds.json").write_text(text)
    assert (state.builds(), state.outdated_builds()) == ([], [])


def test_neighbours_are_the_other_boxes(tmp_path: Path) -> None:
    """Directories beside this one; nothing else."""
    for name in ("a", "b", "c"):
        BoxState(tmp_path / name).make()
    (tmp_path / "file").touch()
    assert [one.directory.name for one in BoxState(tmp_path / "b").other_boxes()] == ["a", "c"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """No temporary file remains, and the old inode's content is unchanged."""
    target = tmp_path / "f"
    target.write_text("old")
    with target.open() as held:
        write_atomically(target, "new")
        assert held.read() == "old"
    assert target.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]
