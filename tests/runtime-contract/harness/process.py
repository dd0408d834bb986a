"""A box under the process engine: column H of the contract."""

from __future__ import annotations

import os
import shutil
import signal as signals
import subprocess
from collections.abc import Sequence
from pathlib import Path

from agentbox.engine.base import Start
from agentbox.engine.identity import become_box_user
from agentbox.engine.process import Process
from agentbox.engine.state import BoxRecord, BoxState
from agentbox.settings import PREFIX_VARIABLE, Paths
from agentbox.supervision.rpc import SupervisorClient
from harness.box import Box, Options, Ran
from harness.plans import plan_of


class ProcessBox(Box):
    """The same boot below a prefix, as uid 1000."""

    engine = "process"

    def __init__(self, folder: Path, options: Options) -> None:
        self.options = options
        self.plan = plan_of(options.manifest, test_hooks=options.test_hooks or bool(options.hooks))
        self.state = BoxState(folder / "state")
        self.state.make()
        self.process = Process()
        self.record: BoxRecord | None = None

    @property
    def root(self) -> Path:
        return self.process.root(self._start())

    @property
    def paths(self) -> Paths:
        return Paths(self.root)

    def _start(self) -> Start:
        return Start(
            plan=self.plan, manifest=self.options.manifest.encode(), state=self.state, strict=self.options.strict,
            hooks=self.options.hooks, secrets=self.options.secrets, project=self.options.project,
        )  # fmt: skip

    def start(self) -> None:
        self.record = self.process.start(self._start())

    def log_lines(self) -> list[str]:
        return list(self.process.logs(self._record, follow=False, lines=None, since=None))

    @property
    def _record(self) -> BoxRecord:
        assert self.record is not None
        return self.record

    def run(self, argv: Sequence[str]) -> Ran:
        relocated = [str(self.paths.at(word)) if word.startswith("/") else word for word in argv]
        done = subprocess.run(
            relocated, capture_output=True, text=True, check=False, preexec_fn=become_box_user, cwd=self.paths.workspace,
            env={PREFIX_VARIABLE: str(self.root), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def exit_code(self) -> int | None:
        try:
            pid, status = os.waitpid(self._record.pid, os.WNOHANG)
        except ChildProcessError:
            return self._ended
        if pid:
            self._ended = os.waitstatus_to_exitcode(status)
            return self._ended
        return None

    _ended: int | None = None

    def kill(self) -> None:
        for pid in self.members():
            os.kill(pid, signals.SIGKILL)

    def members(self) -> list[int]:
        """Every process of this box: those that carry its prefix in their environment."""
        mark = f"{PREFIX_VARIABLE}={self.root}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def stop(self) -> None:
        self.process.stop(self._record, self.plan.resources.stop_seconds)

    def remove(self) -> None:
        self.kill()
        if self.record is not None:
            self.exit_code()
        if self.root.exists():
            shutil.rmtree(self.root)

    def kill_program(self, name: str, signal: str = "KILL") -> int:
        pid = SupervisorClient(self.paths).states()[name].pid
        os.kill(pid, getattr(signals, f"SIG{signal}"))
        return pid
