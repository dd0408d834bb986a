"""A box under the process engine: column H of the contract."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agentbox.core.paths import PREFIX_VARIABLE, Paths
from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.engines.process.booting import boot, boot_environment
from agentbox.host.engines.process.box_files import write_box_files
from agentbox.host.engines.process.box_processes import box_pids
from agentbox.host.engines.process.privilege_drop import become_box_user
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxRecord
from harness.box import Box
from harness.outcomes import API_PORT, NAME, Options, Ran
from harness.plans import plan_of
from harness.waiting import wait_for


class ProcessBox(Box):
    """The same boot below a prefix, as uid 1000."""

    engine = "process"

    def __init__(self, folder: Path, options: Options) -> None:
        super().__init__(folder, options)
        containers_only = (
            options.service,
            options.volumes,
            options.files,
            options.edit,
            options.image_ref,
        )
        assert not any(containers_only), "for containers only"
        plan = plan_of(options.manifest, test_hooks=options.test_hooks or bool(options.hooks))
        self.plan = options.alter(plan) if options.alter else plan
        self.process = ProcessEngine()
        self.root = self.process.root(self._start())
        self.paths = Paths(self.root)
        self._record: BoxRecord | None = None
        self._ended: int | None = None

    def _start(self) -> StartSpec:
        return StartSpec(
            plan=self.plan, manifest=self.options.manifest.encode(), state=self.state, strict=self.options.strict,
            hooks=self.options.hooks, secrets=self.options.secrets,
        )  # fmt: skip

    @property
    def record(self) -> BoxRecord:
        assert self._record is not None
        return self._record

    def lay_out(self) -> None:
        """Writes the box's files without starting anything."""
        if self.options.small_workspace:
            self.paths.workspace.mkdir(parents=True)
            mount(
                "-t", "tmpfs", "-o", "size=8m,uid=1000,gid=1000", "tmpfs", str(self.paths.workspace)
            )
        write_box_files(self.paths, self._start())
        if self.options.mounted:
            self.paths.manifest.write_text(self.options.mounted)

    def start(self) -> None:
        self.lay_out()
        self.boot_again()

    def boot_again(self) -> None:
        pid = boot(self.paths, boot_environment(self.paths, self._start())).pid
        self._ended = None
        self._record = BoxRecord(
            engine="process", name=NAME, api_url=f"http://127.0.0.1:{API_PORT}", plan_digest=self.plan.digest,
            root=str(self.root), pid=pid, start_ticks=start_ticks(pid),
        )  # fmt: skip
        self.state.save_record(self._record)

    def log_lines(self) -> list[str]:
        return list(self.process.logs(self.record, follow=False, lines=None, since=None))

    def run(self, argv: Sequence[str]) -> Ran:
        relocated = [
            str(self.paths.resolve(word)) if word.startswith("/") else word for word in argv
        ]
        done = subprocess.run(
            relocated, capture_output=True, text=True, check=False, preexec_fn=become_box_user, cwd=self.paths.workspace,
            env={PREFIX_VARIABLE: str(self.root), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def exit_code(self) -> int | None:
        if self._ended is None:
            try:
                pid, status = os.waitpid(self.record.pid, os.WNOHANG)
            except ChildProcessError:  # the engine's own `stop` has collected it
                self._ended = 0
            else:
                self._ended = os.waitstatus_to_exitcode(status) if pid else None
        return self._ended

    def kill(self) -> None:
        for pid in self.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def members(self) -> list[int]:
        """Every process of this box."""
        return box_pids(self.root)

    def stop(self) -> None:
        self.process.stop(self.record, self.plan.resources.stop_seconds)

    def mounted_manifest(self) -> Path:
        return self.paths.manifest

    def first_pid(self) -> int:
        return self.record.pid

    def _umounted(self) -> bool:
        return (
            subprocess.run(
                ["umount", str(self.paths.workspace)], capture_output=True, check=False
            ).returncode
            == 0
        )

    def remove(self) -> None:
        self.kill()
        wait_for(lambda: not self.members(), 10, "every process is gone")
        if self._record is not None:
            self.exit_code()
        if (
            self.paths.workspace.is_mount()
        ):  # an agent that works there ends a moment after its host
            wait_for(self._umounted, 10, "nobody is in the workspace")
        if self.root.exists():
            shutil.rmtree(self.root)


def mount(*words: str) -> None:
    """mount(8); needs root, as every test of this directory may assume that the engines do."""
    subprocess.run(["mount", *words], check=True)
