"""When an agent is started again."""

import pytest

from agentbox.agents.runs import restart
from agentbox.contracts.orchestrator import ExitReason, ExitRecord
from agentbox.core import clock
from agentbox.manifest.tables.agents import RestartTable

DEFAULT = RestartTable()


def end(code: int | None = 0, reason: ExitReason = "exit") -> ExitRecord:
    return ExitRecord(code=code, signal=None, reason=reason, at=clock.now())


@pytest.mark.parametrize(
    ("policy", "record", "again"),
    [
        ("never", end(1), False),
        ("on-failure", end(0), False),
        ("on-failure", end(1), True),
        ("on-failure", end(None, "signal"), True),
        ("on-failure", end(None, "lost"), True),
        ("on-failure", end(0, "terminated"), False),
        ("always", end(0), True),
        ("always", end(1, "timeout"), True),
        ("always", end(None, "terminated"), False),
    ],
)
def test_the_policy_decides(policy: restart.RestartPolicy, record: ExitRecord, again: bool) -> None:
    """A requested stop is final; `on-failure` means anything but code 0."""
    assert restart.should_restart(policy, record) is again


def test_delays_double_to_a_bound() -> None:
    """1, 2, 4, 8, 16 s, then the 6th within 300 s is refused."""
    moments: list[float] = []
    found = []
    while (wait := restart.delay(moments, 100.0 + len(moments), 0, DEFAULT)) is not None:
        found.append(wait)
        moments.append(100.0 + len(moments))
    assert found == [1, 2, 4, 8, 16]


def test_old_restarts_are_forgotten() -> None:
    """Only those of the last 300 s count."""
    assert restart.delay([0, 1, 2, 3, 4], 305, 0, DEFAULT) == 1
    assert restart.delay([0, 1, 2, 3, 299], 302.5, 0, DEFAULT) == 4


def test_a_steady_life_starts_anew() -> None:
    """After 300 s the next delay is the first one again."""
    assert restart.delay([100, 200], 401, 301, DEFAULT) == 1
