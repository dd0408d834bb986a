"""The orchestrator external-stdio with the included bridge, for its contract tests."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbox.adapters.orchestrator.bridge_process import SECRET_ENV_PREFIX
from agentbox.adapters.orchestrator.external_stdio import ExternalStdioOrchestrator
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.manifest.slot_options import BridgeOptions
from agentbox.sandbox.launcher import tree
from support.agent_host import AgentHostBox

OPEN_SECONDS = 10.0


def bridge(*arguments: str) -> tuple[str, ...]:
    """Return the command of the bridge for a manifest."""
    return (sys.executable, "-I", "-m", "agentbox.agents.bridge", *arguments)


def stdio(
    paths: Paths,
    *command: str,
    env: Mapping[str, str] | None = None,
    metrics: Metrics | None = None,
    **options: Any,
) -> ExternalStdioOrchestrator:
    """Return an unopened adapter with that child process."""
    secrets = {f"{SECRET_ENV_PREFIX}{name}": value for name, value in (env or {}).items()}
    config = SlotConfig(
        slot="orchestrator",
        use="external-stdio",
        required=True,
        paths=paths,
        secrets=secrets,
        options=BridgeOptions(command=command, **options),
    )
    return ExternalStdioOrchestrator(config, Deps(metrics=metrics or Metrics()))


class BridgeBox:
    """A directory with a plan, and adapters whose child runs its own agents there."""

    def __init__(
        self,
        prefix: Path,
        *,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        scale: float = 1,
    ) -> None:
        host = AgentHostBox(
            prefix, limits=limits, options=options, scale=scale
        )  # only for its plan; it is not started
        self.paths = host.paths
        self._env = {"AGENTBOX_TEST_CLOCK_SCALE": str(scale)}

    def make(self) -> ExternalStdioOrchestrator:
        """Return an unopened adapter."""
        return stdio(self.paths, *bridge(), env=self._env)

    async def open(self) -> ExternalStdioOrchestrator:
        """Return an open adapter with a new child."""
        adapter = self.make()
        await adapter.open(Deadline.after(OPEN_SECONDS))
        return adapter


def crash(adapter: ExternalStdioOrchestrator) -> None:
    """Kills the child and its parents at once, leaving its descendants orphaned."""
    pids = [adapter.pid]
    while len(pids) < 3:  # the child, its reaper, the launcher
        process = tree.read_process(pids[-1])
        assert process is not None
        pids.append(process.parent)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in reversed(pids):
            os.kill(pid, number)
