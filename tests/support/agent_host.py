"""Runs a real agent-host below a directory, for contract tests and benchmarks of the
orchestrator.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.box.supervision.notify import read_note
from agentbox.core.canonical import canonical_json
from agentbox.core.linux import kernel
from agentbox.core.paths import PREFIX_VARIABLE, Paths, environment
from agentbox.manifest.slot_options import ProcessOptions
from agentbox.plan.model import (
    ApiPlan,
    Digests,
    ObservabilityPlan,
    Plan,
    Program,
    ReadySignal,
    ResourcesPlan,
    SlotPlan,
)
from support import plans, tables
from support.forked_program import ForkedProgram

MIB = 1 << 20
_START_SECONDS = 20.0


def plan_of(
    limits: Mapping[str, Any],
    options: Mapping[str, Any],
    manifest: str = "",
    pids: int = 0,
    programs: Iterable[str] = (),
) -> Plan:
    """Return a plan for starting agent-host: what it does not read is empty. Agents, policies,
    providers and egress are those of a manifest text. `pids` is the limit of the box, 0 =
    unlimited. `programs` have connections of their own.
    """
    parsed = plans.plan_of(manifest)
    digest = "sha256:" + "0" * 64
    return Plan(
        version="0",
        name="test",
        system="x86_64-linux",
        dev=parsed.dev,
        source="debian",
        suite="trixie",
        python="3.13",
        features=(),
        digests=Digests(manifest=digest, lock=digest, seccomp=digest),
        resources=ResourcesPlan(
            cpus=2, memory=0, pids=pids, nofile=0, tmp_size=0, log_size=0, stop_seconds=30
        ),
        api=ApiPlan(
            port=9090,
            publish_address="",
            auth="token",
            max_body=MIB,
            public_base="",
            token_env="",
            session_idle_seconds=28_800,
            session_seconds=86_400,
        ),
        observability=ObservabilityPlan(
            metrics_port=9091, publish_address="", otlp_endpoint="", log_level="debug"
        ),
        mesh=tables.mesh(),
        privacy=tables.privacy(),
        limits=tables.limits(**limits),
        state=parsed.state,
        cost=parsed.cost,
        sandboxes=parsed.sandboxes,
        acp=parsed.acp,
        mcp=parsed.mcp,
        backup=parsed.backup,
        agents=parsed.agents,
        policies=parsed.policies,
        providers=parsed.providers,
        reach=parsed.reach,
        slots={"orchestrator": SlotPlan(use="local-process", required=True, options=options)},
        programs=tuple(
            Program(
                name=name,
                priority=50,
                argv=("/bin/true",),
                required=False,
                ready=ReadySignal(by="state"),
            )
            for name in programs
        ),
        ports=(),
        probes=(),
        tmpfs=(),
        volumes=(),
        writable_roots=(),
        secrets=(),
        environment={},
        egress=(),
        exceptions=(),
        apply={},
        test_hooks=True,
    )


class AgentHostBox:
    """Starts and stops the program below `prefix`. `scale` divides restart delays."""

    def __init__(
        self,
        prefix: Path,
        *,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        scale: float = 1,
        manifest: str = "",
        pids: int = 0,
        programs: Iterable[str] = (),
    ) -> None:
        self.paths = Paths(prefix)
        self._scale, self._options = scale, ProcessOptions(**(options or {}))
        self._process: ForkedProgram | None = None
        for directory in (
            self.paths.share,
            self.paths.run,
            self.paths.ready_dir,
            self.paths.state,
            self.paths.workspace,
        ):
            directory.mkdir(parents=True, exist_ok=True)
        self.paths.plan.write_bytes(
            canonical_json(plan_of(limits or {}, options or {}, manifest, pids, programs).to_json())
        )
        self.log = prefix / "agent-host.log"

    def slot_config(self) -> SlotConfig[ProcessOptions]:
        """Of the orchestrator `local-process`, with the options of this host."""
        return SlotConfig(
            slot="orchestrator",
            use="local-process",
            required=True,
            paths=self.paths,
            options=self._options,
        )

    @property
    def process(self) -> ForkedProgram:
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the program and waits until it is ready. Raises RuntimeError with its log."""
        inherited = {
            name: environment()[name] for name in ("PATH", "HOME") if name in environment()
        }
        env = {
            **inherited,
            PREFIX_VARIABLE: str(self.paths.prefix),
            "AGENTBOX_TEST_CLOCK_SCALE": str(self._scale),
        }
        with self.log.open("ab") as out:
            self._process = ForkedProgram("agentbox.agents", env, out)
        deadline = time.monotonic() + _START_SECONDS
        while True:
            note = read_note(self.paths, "agent-host")
            if note is not None and note.pid == self._process.pid:
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"agent-host does not start:\n{self.log.read_text(encoding='utf-8')}"
                )
            time.sleep(0.01)

    def kill(self) -> None:
        """Sends SIGKILL, like a crash."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Sends SIGTERM, and SIGKILL if the process does not end within 10 s. Idempotent."""
        if self._process is None or not self.running:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
            return
        self.kill()


def end_with_parent() -> None:
    """Ends the process with a killed test run."""
    kernel.set_parent_death_signal(signal.SIGTERM)
