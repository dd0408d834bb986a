"""Spreads test files over the processes of a run: slow ones start first, so that no process ends
late."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from agentbox.core.paths import CHECKOUT

DURATIONS = CHECKOUT / "tests" / "durations.json"
_UNKNOWN_SECONDS = 0.2
"""Of a test in a file that has no stored duration."""


class HeaviestFirst(LoadFileScheduling):
    """A file at a time, the one with the most seconds first."""

    @cached_property
    def _seconds(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
        return found

    def _cost(self, file: str) -> float:
        return self._seconds.get(file, _UNKNOWN_SECONDS * len(self.workqueue[file]))

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(max(self.workqueue, key=self._cost), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> HeaviestFirst | None:
    """For `--dist loadfile`; None leaves the choice to xdist."""
    return HeaviestFirst(config, log) if config.getoption("dist") == "loadfile" else None
