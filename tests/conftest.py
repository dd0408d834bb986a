"""What holds in every suite."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any-pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-pace")  # a property is about values; a bound on time has a test of its own


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A bound of time is kept as it is; noise of the machine is answered by trying again."""
    for item in items:
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=2))
