"""Boot events: a closed table, one sequence for all writers."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.box.supervision.boot_event_log import BootEventLog, read_events
from agentbox.core.paths import Paths

WRITER = """
import sys
from pathlib import Path
from agentbox.core.paths import Paths
from agentbox.box.supervision.boot_event_log import BootEventLog
log = BootEventLog(Paths(Path(sys.argv[1])), "boot")
for number in range(100):
    log.emit("CapabilityValidated", capability=str(number), ms=1)
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    made.run.mkdir(parents=True)
    return made


def test_several_processes_share_one_sequence(paths: Paths) -> None:
    """Several processes share one sequence."""
    argv = [sys.executable, "-c", WRITER, str(paths.prefix)]
    writers = [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert [event["seq"] for event in read_events(paths)] == list(range(1, 401))


def test_an_unknown_event_field_or_level_is_a_bug(paths: Paths) -> None:
    """An unknown event field or level is a bug."""
    log = BootEventLog(paths, "boot", stream=io.StringIO())
    with pytest.raises(KeyError):
        log.emit("SomethingElse")
    with pytest.raises(ValueError, match="no field reson"):
        log.emit("BootstrapFailed", phase="1", reson="x")
    with pytest.raises(ValueError, match="no level"):
        log.emit("BootstrapFailed", level="debug")
    assert list(read_events(paths)) == []


def test_the_level_is_the_tables_unless_it_leaves_a_choice(paths: Paths) -> None:
    """The level is the table's unless it leaves a choice."""
    out = io.StringIO()
    log = BootEventLog(paths, "boot", "sha256:p", "ref", out)
    log.emit("BootstrapFailed", phase="1", reason="r", fix="f")
    log.emit("ManifestDrift", level="error", keys=["a.b"], source="manifest")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["fatal", "error"]
    assert {line["plan_digest"] for line in lines} == {"sha256:p"}


def test_without_a_folder_stdout_has_the_event_alone(tmp_path: Path) -> None:
    """Without a directory stdout alone has the event."""
    out = io.StringIO()
    BootEventLog(Paths(tmp_path / "absent"), "boot", stream=out).emit(
        "ApiTokenResolved", source="file"
    )
    assert json.loads(out.getvalue())["seq"] == 0


def test_a_torn_last_line_is_not_read(paths: Paths) -> None:
    """A torn last line is not read."""
    BootEventLog(paths, "boot", stream=io.StringIO()).emit("ApiTokenResolved", source="file")
    with paths.boot_events.open("ab") as stream:
        stream.write(b'{"event":')
    assert [event["event"] for event in read_events(paths)] == ["ApiTokenResolved"]
