"""Fixtures and rules of every suite."""

from __future__ import annotations

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["sampling", "scheduling"]
settings.register_profile("any-pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(
    "any-pace"
)  # a property is about values; a bound on time has a test of its own

gc.disable()  # while tests are collected, whose modules and parameters all stay

# A run in the background or under nohup inherits ignored signals, and so would every program that a test interrupts.
_DEFAULTS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGTERM: signal.SIG_DFL,
}


def pytest_configure() -> None:
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _DEFAULTS)


def pytest_collection_finish() -> None:
    """What was collected is not searched for garbage again, here or in processes forked from here."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A bound on time is checked as written; noise of the machine is handled by trying again."""
    for item in items:
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=2))
