"""The stored answer of a one-shot run."""

from pathlib import Path

import pytest

from agentbox.agents.runs import exits
from agentbox.agents.runs.runs import _store, _stored
from agentbox.agents.streams.log import StreamLog
from agentbox.contracts.orchestrator import RunResult

RESULT = RunResult(exit=exits.lost(), stdout=b"\0out", stderr=b"", truncated=True, isolation={})


@pytest.fixture
def stream(tmp_path: Path) -> StreamLog:
    (tmp_path / "s").mkdir(exist_ok=True)
    return StreamLog(tmp_path / "s", 4096)


def test_an_answer_is_read_back(stream: StreamLog) -> None:
    """As it was given; none where none was stored."""
    assert _stored(stream) is None
    _store(stream, RESULT)
    found = _stored(stream)
    assert found is not None
    assert (found.stdout, found.truncated) == (b"\0out", True)


def test_a_disk_that_takes_none_costs_no_answer(stream: StreamLog) -> None:
    """Storing fails and says so in the log; it raises nothing at the run, whose caller waits for the answer."""
    (stream.folder / "result.json").mkdir()
    _store(stream, RESULT)
    assert _stored(stream) is None


def test_half_an_answer_is_none(stream: StreamLog) -> None:
    """What a crash cut off."""
    (stream.folder / "result.json").write_text("{")
    assert _stored(stream) is None
