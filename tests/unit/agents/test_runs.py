"""The stored answer of a one-shot run."""

from pathlib import Path

import pytest

from agentbox.agents.runs import exits
from agentbox.agents.runs.one_shot import _load_result, _save_result
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import RunResult

RESULT = RunResult(
    exit=exits.lost_exit(), stdout=b"\0out", stderr=b"", truncated=True, isolation={}
)


@pytest.fixture
def stream(tmp_path: Path) -> StreamLog:
    (tmp_path / "s").mkdir(exist_ok=True)
    return StreamLog(tmp_path / "s", 4096)


def test_an_answer_is_read_back(stream: StreamLog) -> None:
    """As it was sent; none where none was stored."""
    assert _load_result(stream) is None
    _save_result(stream, RESULT)
    found = _load_result(stream)
    assert found is not None
    assert (found.stdout, found.truncated) == (b"\0out", True)


def test_a_disk_that_takes_none_costs_no_answer(stream: StreamLog) -> None:
    """Storing fails and is logged; it raises nothing in the run, whose caller waits for the result."""
    (stream.directory / "result.json").mkdir()
    _save_result(stream, RESULT)
    assert _load_result(stream) is None


def test_half_an_answer_is_none(stream: StreamLog) -> None:
    """What a crash cut off."""
    (stream.directory / "result.json").write_text("{")
    assert _load_result(stream) is None
