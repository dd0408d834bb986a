"""The times of the slots' state machine."""

from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming


def test_the_times_of_the_specification():
    """Open 10 s, a loser 2 s, health every 5 s within 2 s, close 5 s, stop 10 s."""
    timing = LifecycleTiming()
    assert (timing.open, timing.failed_close, timing.health_interval, timing.health) == (
        10,
        2,
        5,
        2,
    )
    assert (timing.close, timing.stop, timing.retry_reset) == (5, 10, 60)


def test_retry_waits_grow_to_a_minute():
    """0.1 s and up to min(60 s, 1 s * 2^n)."""
    timing = LifecycleTiming()
    for failures in range(100):
        ceiling = min(60, 2**failures)
        waits = [timing.retry_delay(failures) for _ in range(50)]
        assert min(waits) >= 0.1
        assert max(waits) <= 0.1 + ceiling
        assert max(waits) > 0.1 + ceiling / 4


def test_scaled():
    """Every time by the same factor."""
    assert LifecycleTiming().scaled(0.1).open == 1
    assert LifecycleTiming().scaled(0.1).retry_maximum == 6
