"""What every contract suite needs. A skip in a suite is a failure."""

import pytest
from postgres_server import running

from agentbox.testing.clock import ManualClock

pytest.register_assert_rewrite("agentbox.testing.contracts")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def principals() -> tuple[str, ...]:
    return ("urn:agentbox:box:one", "urn:agentbox:box:two")


@pytest.fixture(scope="session")
def postgres():
    """A server for all; a test that stops it starts it again."""
    with running() as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: a clause holds or it does not"
    return report
