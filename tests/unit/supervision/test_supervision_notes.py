"""Notes and restarts of programs."""

import json
import os
from pathlib import Path

import pytest

from agentbox.box.supervision.backoff import consecutive_starts, wait_seconds
from agentbox.box.supervision.fault_hooks import FaultHooks, requested_hooks
from agentbox.box.supervision.notify import notify, read_note
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    made.ready_dir.mkdir(parents=True)
    return made


def test_a_note_names_the_process_that_wrote_it(paths: Paths) -> None:
    """A note names the process that wrote it."""
    notify(paths, "api")
    note = read_note(paths, "api")
    assert note is not None
    assert note.is_written_by(os.getpid())
    assert not note.is_written_by(1)


def test_a_note_of_an_earlier_process_with_the_same_pid_is_not_believed(paths: Paths) -> None:
    """A note of an earlier process with the same pid is not believed."""
    notify(paths, "api")
    document = json.loads((paths.ready_dir / "api").read_bytes())
    (paths.ready_dir / "api").write_text(json.dumps({**document, "start_ticks": 1}))
    note = read_note(paths, "api")
    assert note is not None
    assert not note.is_written_by(os.getpid())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}'])
def test_a_damaged_note_counts_as_none(paths: Paths, content: str) -> None:
    """A damaged note counts as none."""
    (paths.ready_dir / "api").write_text(content)
    assert read_note(paths, "api") is None


def test_no_note_is_none(paths: Paths) -> None:
    """No note is none."""
    assert read_note(paths, "api") is None


def test_three_starts_in_a_row_are_free_and_then_the_wait_doubles_to_half_a_minute() -> None:
    """However often it was started, the delay stays there, and the program is started again."""
    waits = [wait_seconds(starts) for starts in range(1, 14)]
    assert waits == [0, 0, 0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert wait_seconds(10_000) == 30.0


def test_a_healthy_stretch_ends_a_row_of_starts() -> None:
    """Starts before it do not count; one that waited is counted from the end of its wait, and a kill every 4 s never ends a row."""
    assert consecutive_starts([0.0, 1.0, 2.0], 12.0) == [12.0]
    assert consecutive_starts([0.0, 1.0, 2.0], 11.0) == [0.0, 1.0, 2.0, 11.0]
    assert consecutive_starts([0.0, 40.0], 45.0) == [40.0, 45.0]
    assert consecutive_starts([40.0], 30.0) == [40.0, 30.0]
    row: list[float] = []
    for kill in range(200):
        row = consecutive_starts(row, kill * 4.0)
    assert len(row) == 100


def test_a_process_is_alive_only_under_its_own_start_time() -> None:
    """A process is alive only under its own start time."""
    ticks = procfs.start_ticks(os.getpid())
    assert ticks is not None
    assert procfs.is_alive(os.getpid(), ticks)
    assert not procfs.is_alive(os.getpid(), ticks + 1)
    assert procfs.start_ticks(1 << 30) is None


def test_hooks_are_read_from_their_variables() -> None:
    """Hooks are read from their variables."""
    env = {
        "AGENTBOX_TEST_DELAY_SLOT": "beads:2.5",
        "AGENTBOX_TEST_FAIL_SLOT": "memory",
        "AGENTBOX_TEST_SEAL_TIMEOUT": "3",
    }
    assert FaultHooks.from_environment(env) == FaultHooks(
        delay_slot={"beads": 2.5}, fail_slot="memory", seal_timeout=3
    )
    assert requested_hooks(env) == tuple(sorted(env))


@pytest.mark.parametrize("text", ["beads", "beads:", "beads:soon", ":1"])
def test_a_hook_that_cannot_be_understood_is_refused_by_name(text: str) -> None:
    """A hook that cannot be understood is refused by name."""
    with pytest.raises(ValueError, match="AGENTBOX_TEST_DELAY_SLOT"):
        FaultHooks.from_environment({"AGENTBOX_TEST_DELAY_SLOT": text})
