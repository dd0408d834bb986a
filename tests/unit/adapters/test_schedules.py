"""Repeating times."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.adapters.beads.schedules import Schedule

START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 10**9).map(lambda ms: START + timedelta(milliseconds=ms))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT60S", 60),
        ("PT1M", 60),
        ("PT1H30M", 5400),
        ("P1D", 86400),
        ("P2W", 1209600),
        ("P1DT1S", 86401),
    ],
)
def test_durations(text, seconds):
    """ISO 8601, without months and years."""
    assert Schedule.parse(text).step == timedelta(seconds=seconds)


@given(
    st.sampled_from(["PT60S", "PT7M", "*/5 * * * *", "0 3 * * 1", "30 6 1 * *"]), MOMENTS, MOMENTS
)
def test_latest_and_after_surround_the_moment(text, one, two):
    """`latest` is due and not later; `after` is due and later; nothing is due between."""
    every, (first, moment) = Schedule.parse(text), sorted([one, two])
    due = every.first_due(first)
    if due > moment:
        return
    latest, after = every.latest_due(due, moment), every.next_due(due, moment)
    assert due <= latest <= moment < after
    assert every.next_due(latest, latest) == after
