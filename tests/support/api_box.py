"""Runs a real management API, optionally with a real agent-host, below a directory: no boot, no
supervisord, no container.
"""

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentbox.api.mesh.host_setup import SCALE_HOOK
from agentbox.client import BoxClient, BoxUnreachable
from agentbox.core.canonical import canonical_json
from agentbox.core.paths import PREFIX_VARIABLE, Paths, environment
from agentbox.plan.model import Plan, SlotPlan
from support.agent_host import AgentHostBox, plan_of
from support.forked_program import ForkedProgram
from support.ports import free_port

TOKEN = "an-admin-token-of-a-test"
SLOTS = {
    "beads": SlotPlan(use="local-sqlite", required=False, options={"lease_seconds": 60}),
    "pods": SlotPlan(use="local-fs", required=False),
    "memory": SlotPlan(use="local-sqlite", required=False),
    "events": SlotPlan(use="local-jsonl", required=False, options={"fsync": "group"}),
    "orchestrator": SlotPlan(use="local-process", required=True, options={"grace_seconds": 1}),
}
_START_SECONDS = 20.0


def api_plan(**changes: Any) -> Plan:
    """Return a plan for starting the API on two free ports. `changes` are fields of Plan."""
    base = plan_of({}, {})
    api = replace(
        base.api, port=free_port(), publish_address="127.0.0.1", token_env="AGENTBOX_API_TOKEN"
    )
    observability = replace(
        base.observability, metrics_port=free_port(), publish_address="127.0.0.1", log_level="info"
    )
    return replace(base, **{"api": api, "observability": observability, "slots": SLOTS, **changes})


class ApiBox:
    """A context manager; `orchestrator=False` turns that slot off and starts no agent-host.

    The plan is `plan`, else one with real slots and with `changes`. Times of the mesh are divided
    by `scale`.
    """

    def __init__(
        self,
        prefix: Path,
        *,
        orchestrator: bool = True,
        plan: Plan | None = None,
        scale: float = 1,
        **changes: Any,
    ) -> None:
        overrides = (
            {}
            if orchestrator
            else {"slots": {**SLOTS, "orchestrator": SlotPlan(use="off", required=False)}}
        )
        self.host = AgentHostBox(prefix) if orchestrator else None
        self.paths = Paths(prefix)
        self.plan = plan or api_plan(**{**overrides, **changes})
        for directory in (
            self.paths.share,
            self.paths.ready_dir,
            self.paths.workspace,
            self.paths.state_secrets,
        ):
            directory.mkdir(parents=True, exist_ok=True)
        self.paths.plan.write_bytes(canonical_json(self.plan.to_json()))
        self.paths.api_key.write_text(TOKEN)
        self.log = prefix / "api.log"
        self._scale = scale
        self.process: ForkedProgram | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.plan.api.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.plan.observability.metrics_port}"

    def client(self, token: str = TOKEN) -> BoxClient:
        return BoxClient(self.url, token=token, timeout=30)

    def __enter__(self) -> Self:
        try:
            if self.host is not None:
                self.host.start()
            self.start()
        except BaseException:
            self._shut_down()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._shut_down()

    def _shut_down(self) -> None:
        """Ends all processes, by SIGKILL if necessary."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            if self.host is not None:
                self.host.stop()

    def start(self, *, wait: bool = True) -> None:
        """Waits until `/livez` responds and every slot is open; without `wait`, until opening was
        attempted. Raises RuntimeError with the log.
        """
        inherited = {
            name: environment()[name] for name in ("PATH", "HOME") if name in environment()
        }
        with self.log.open("ab") as out:
            env = {
                **inherited,
                PREFIX_VARIABLE: str(self.paths.prefix),
                SCALE_HOOK: str(self._scale),
            }
            self.process = ForkedProgram("agentbox.api", env, out)
        deadline = time.monotonic() + _START_SECONDS
        with self.client() as client:
            while not self._is_ready(client, ("ok", "off") if wait else ("ok", "off", "down")):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the API does not start:\n{self.log.read_text()}")
                time.sleep(0.01)

    @staticmethod
    def _is_ready(client: BoxClient, states: tuple[str, ...]) -> bool:
        try:
            return all(row.state in states for row in client.health().adapters.values())
        except BoxUnreachable:
            return False

    def kill(self) -> None:
        """Sends SIGKILL, like a crash."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Sends SIGTERM; returns the exit code. Idempotent. Raises TimeoutExpired after 15 s."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(15)
