"""Spreads test files over the processes of a run: slow ones start first, so that no process ends
late."""

from __future__ import annotations

import json
from collections import Counter
from functools import cached_property
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from agentbox.core.paths import CHECKOUT

DURATIONS = CHECKOUT / "tests" / "durations.json"
_UNKNOWN_SECONDS = 0.2
"""Of a test in a file that has no stored duration."""
_SERVERS = (
    (
        "beads_external_pg",
        "faulty",
        "memory_external_pg",
        "memory_finding",
        "memory_pg_words",
        "memory_reembed",
        "postgres_target",
        "postgres_tls",
    ),
    ("pods_external_solid", "pods_solid_faults"),
)
_GROUPS = {
    f"tests/contract/test_{name}.py": f"server of {names[0]}"
    for names in _SERVERS
    for name in names
}
"""Files that one process runs, since they share a server, whose start takes seconds of CPU."""


class HeaviestFirst(LoadFileScheduling):
    """A file, or files that share a server, at a time, the one with the most seconds first."""

    @cached_property
    def _costs(self) -> dict[str, float]:
        return {}

    @cached_property
    def _seconds(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
        return found

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _GROUPS.get(file, file)

    def _cost(self, scope: str) -> float:
        """Seconds."""
        if scope not in self._costs:
            tests = Counter(nodeid.partition("::")[0] for nodeid in self.workqueue[scope])
            self._costs[scope] = sum(
                self._seconds.get(file, _UNKNOWN_SECONDS * count) for file, count in tests.items()
            )
        return self._costs[scope]

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(max(self.workqueue, key=self._cost), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> HeaviestFirst | None:
    """For `--dist loadfile`; None leaves the choice to xdist."""
    return HeaviestFirst(config, log) if config.getoption("dist") == "loadfile" else None
