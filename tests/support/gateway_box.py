"""Runs a real gateway below a directory, as supervisord would start it, without the rest of the
box.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any, Self

from agentbox.box.supervision.notify import read_note
from agentbox.core.canonical import canonical_json
from agentbox.core.paths import PREFIX_VARIABLE, Paths, environment
from agentbox.plan.model import Plan
from agentbox.plan.names import GATEWAY
from agentbox.plan.network import gateway_port
from support.api_box import api_plan
from support.forked_program import ForkedProgram

_START_SECONDS = 20.0


class GatewayBox:
    """A context manager. `plan` is that of other programs below the same directory; else one with
    `changes`.
    """

    def __init__(self, prefix: Path, plan: Plan | None = None, **changes: Any) -> None:
        self.paths = Paths(prefix)
        self.plan = plan or api_plan(**changes)
        self.port = gateway_port(self.plan, in_container=False)
        for directory in (self.paths.share, self.paths.ready_dir, self.paths.state):
            directory.mkdir(parents=True, exist_ok=True)
        self.paths.plan.write_bytes(canonical_json(self.plan.to_json()))
        self.log = prefix / "gateway.log"
        self.process: ForkedProgram | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Starts the program and waits until it is ready. Raises RuntimeError with its log."""
        inherited = {
            name: environment()[name] for name in ("PATH", "HOME") if name in environment()
        }
        with self.log.open("ab") as out:
            env = {**inherited, PREFIX_VARIABLE: str(self.paths.prefix)}
            self.process = ForkedProgram("agentbox.gateway", env, out)
        deadline = time.monotonic() + _START_SECONDS
        while (note := read_note(self.paths, GATEWAY)) is None or note.pid != self.pid:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the gateway does not start:\n{self.log.read_text()}")
            time.sleep(0.005)

    def kill(self) -> None:
        """Sends SIGKILL, like a crash."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Sends SIGTERM; returns the exit code. Idempotent. Raises TimeoutExpired after 10 s."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(10)
