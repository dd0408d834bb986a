"""The process engine: the same boot below a prefix on the host, for development and machines
without an engine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from agentbox.box.supervision.missing_protections import PROCESS_ENGINE_LACKS
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_in_place
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.engines.base import BoxStatus, StartSpec, StoredStart
from agentbox.host.engines.docker.compose import secrets_match
from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.engines.interrupts import deferred_interrupts
from agentbox.host.engines.locations import process_root
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.process.booting import (
    boot,
    boot_environment,
    boot_settings,
    box_environment,
    run_inside,
)
from agentbox.host.engines.process.box_files import write_box_files, write_secrets
from agentbox.host.engines.process.box_processes import box_pids, kill_all, leader_pid
from agentbox.host.engines.process.one_shot import run_once
from agentbox.host.engines.process.privilege_drop import become_box_user, require_readable
from agentbox.host.engines.process.stored_start import store_files, write_stored_files
from agentbox.host.engines.process.volumes import discard, mount, volume_prefix
from agentbox.host.engines.state import BoxRecord, BoxState

_POLL_SECONDS = 0.05
_KILL_SECONDS = 5.0


class ProcessEngine:
    """Runs a box as processes of this host below `root`, as uid 1000 if root starts it, else as the
    caller.
    """

    name = "process"
    protections_absent: tuple[str, ...] = PROCESS_ENGINE_LACKS

    def root(self, start: StartSpec) -> Path:
        """The root: in the state directory, or in one that uid 1000 can reach if root starts it."""
        return process_root(start.name, start.state)

    def check(self, start: StartSpec) -> None:
        """Raises AgentboxError: exit 7 for a port in use, 3 for limits and for paths that uid 1000
        cannot read.
        """
        from agentbox.host.engines import host_limits, ports  # needed for a start only

        if os.geteuid() == 0:
            require_readable([CHECKOUT, Path(sys.prefix), Path(sys.executable).resolve()])
        host_limits.check(start.plan, host_limits.process_limits())
        running = set(box_pids(self.root(start)))
        rows = ports.host_ports(start.plan)
        box_ports = {row.port for row in rows if running.intersection(ports.listeners(row.port))}
        ports.require_free_ports(rows, box_ports, find_container=ports.publishing_container)

    def start(self, start: StartSpec) -> BoxRecord:
        """Stops what remains of an earlier start, writes the box's files below its root, and
        boots.
        """
        from agentbox.host.uninstall.inventory import Inventory  # needed for a start only

        root = self.root(start)
        if running_pid := leader_pid(root):
            self._stop(running_pid, root, start.plan.resources.stop_seconds)
        kill_all(root, _KILL_SECONDS)
        paths = Paths(root)
        Inventory(start.state.directory.parent).add_directory("process-root", root)
        with wrap_os_errors(f"write the files of the box below {root}"):
            mount(root, start.volumes)
            write_box_files(paths, start)
            with deferred_interrupts():  # a process without a record could not be stopped later
                pid = boot(paths, boot_environment(paths, start), offline=start.offline).pid
                return self.make_record(start, pid)

    def store_files(self, start: StartSpec, folder: Path) -> None:
        """Keeps the rendered files of a start in `folder`."""
        with wrap_os_errors(f"write {folder}"):
            store_files(self.root(start), folder)

    def start_stored(self, stored: StoredStart) -> BoxRecord:
        """Stops what runs, puts stored files and volumes in place, and boots."""
        record, root = stored.record, Path(stored.record.root)
        if running_pid := leader_pid(root):
            self._stop(running_pid, root, stored.stop_seconds)
        kill_all(root, _KILL_SECONDS)
        paths = Paths(root)
        with wrap_os_errors(f"write the files of the box below {root}"):
            mount(root, stored.volumes)
            write_stored_files(root, stored.files, stored.python, record.project)
            write_secrets(paths, stored.secrets)
            with deferred_interrupts():
                environment = boot_settings(paths, stored.passed, stored.environment)
                pid = boot(paths, environment).pid
                return replace(record, pid=pid, start_ticks=start_ticks(pid), settled=True)

    def run_once(self, shot: OneShot, doing: str, stdin: IO[bytes] | None = None) -> str:
        """Runs one program on the volumes of the box."""
        return run_once(shot, doing, stdin)

    def has_state(self, name: str, state: BoxState, volumes: Mapping[str, str]) -> bool:
        return Paths(volume_prefix(process_root(name, state), volumes)).state.is_dir()

    def discard_volumes(self, name: str, state: BoxState, volumes: Mapping[str, str]) -> None:
        with wrap_os_errors(f"remove the volumes {', '.join(volumes.values())} of {name}"):
            discard(process_root(name, state), volumes)

    def refresh(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Starts again: the boot applies every change."""
        return self.start(start)

    def rewrite(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Updates the mounted manifest only."""
        write_in_place(Paths(Path(record.root)).manifest, start.manifest)
        return self.make_record(start, record.pid)

    def make_record(self, start: StartSpec, pid: int) -> BoxRecord:
        """Return the record of a start."""
        return BoxRecord(
            engine=self.name,
            name=start.name,
            api_url=start.api_url,
            plan_digest=start.plan.digest,
            strict=start.strict,
            hooks=dict(start.hooks),
            test_hooks=start.plan.test_hooks,
            root=str(self.root(start)),
            project=str(start.project or ""),
            pid=pid,
            start_ticks=start_ticks(pid),
            apply=dict(start.plan.apply),
            made_of=start.made_of,
            volumes=dict(start.volumes),
        )

    def secrets_match(self, start: StartSpec) -> bool:
        return secrets_match(start, Paths(self.root(start)).mounted_secrets)

    def find_running(self, name: str, state: BoxState, api_url: str) -> BoxRecord | None:
        """Find a running box of this state directory whose record is lost."""
        root = process_root(name, state)
        if not box_pids(root):
            return None
        pid = leader_pid(root) or 0
        return BoxRecord(
            engine=self.name,
            name=name,
            api_url=api_url,
            root=str(root),
            pid=pid,
            start_ticks=start_ticks(pid),
            settled=False,
        )

    def inspect(self, record: BoxRecord) -> BoxStatus:
        alive = record.pid > 0 and start_ticks(record.pid) == record.start_ticks
        return BoxStatus(
            "running" if alive else "exited" if Path(record.root).exists() else "absent", None
        )

    def stop(self, record: BoxRecord, seconds: int) -> None:
        root = Path(record.root)
        if self.inspect(record).state == "running" and record.pid in box_pids(root):
            self._stop(record.pid, root, seconds)

    def _stop(self, pid: int, root: Path, seconds: int) -> None:
        ticks = start_ticks(pid)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while start_ticks(pid) == ticks and time.monotonic() < deadline:
            _reap(pid)
            time.sleep(_POLL_SECONDS)
        kill_all(root, _KILL_SECONDS)
        _reap(pid)

    def restart(self, record: BoxRecord, seconds: int) -> None:
        raise AgentboxError(
            "cannot restart a process-engine box in place",
            "Run ./agentbox.sh up to boot the box again.",
            exit_code=ExitCode.ENGINE,
        )

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        """Also stops processes that a killed supervisord left."""
        root = Path(record.root)
        kill_all(root, _KILL_SECONDS)
        if volumes:
            shutil.rmtree(root, ignore_errors=False)
            return
        for name in ("run", "tmp", "opt", "etc"):
            shutil.rmtree(root / name, ignore_errors=True)

    def find_stored(self, name: str, state: BoxState) -> BoxRecord | None:
        """Return a record of the stored data of a box that is down, for `remove`; None if there is
        none.
        """
        root = process_root(name, state)
        return (
            BoxRecord(engine=self.name, name=name, api_url="", root=str(root))
            if root.exists()
            else None
        )

    def logs(
        self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None
    ) -> Iterator[str]:
        from agentbox.host.engines.process.log_file import (
            read_lines,
        )  # renderers are slow to import, and few commands need them
        from agentbox.plan.supervisord_files import boot_log

        return read_lines(boot_log(Paths(Path(record.root))), follow=follow, lines=lines)

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        paths = Paths(Path(record.root))
        return subprocess.run(
            argv,
            cwd=paths.workspace,
            env=box_environment(paths),
            preexec_fn=become_box_user,
            check=False,
        ).returncode

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        return Paths(Path(record.root)).resolve(box_path).read_bytes()

    def run_inside(self, record: BoxRecord, module: str, stdin: str, seconds: float) -> str:
        """Runs a module in the network of the box."""
        return run_inside(record, module, stdin, seconds)


def _reap(pid: int) -> None:
    """Reaps the box if it is a child of this process (after an interrupted `up`)."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
