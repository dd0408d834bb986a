"""Runs suites: lanes in parallel, the suites of a lane sequentially, timed ones last."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Final

from agentbox.core.mount_namespace import preexec_function
from agentbox.core.paths import CHECKOUT, environment
from agentbox.host.cli.suites.catalogue import Suite
from agentbox.host.cli.suites.report import SuiteResult, read_result

_NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
"""Not for the suites: their many programs would each compile the same modules again."""
_HANDLED_BY_DEFAULT = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)


def reset_child_signals() -> None:
    """Resets signals for child processes. A signal that this process ignores (background, nohup)
    gets an empty handler: ignored signals are inherited, handlers are not."""
    for signal_number in _HANDLED_BY_DEFAULT:
        if signal.getsignal(signal_number) is signal.SIG_IGN:
            signal.signal(signal_number, _no_effect)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED_BY_DEFAULT)


def _no_effect(_number: int, _frame: FrameType | None) -> None:
    return


@dataclass
class Runner:
    """Runs suites; their reports and output go to `directory`. An interrupt is sent to every suite
    once; each removes its boxes and is waited for."""

    directory: Path
    on_ended: Callable[[SuiteResult], None]
    """Called when a suite ends."""
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _interrupted: bool = False
    _finished: dict[str, threading.Event] = field(default_factory=dict)
    """Suite name -> event."""
    _prepare: Callable[[], None] | None = None
    """In a plain chroot: gives each program a mount namespace with that root, because agents need
    user namespaces."""

    def run(self, lanes: Sequence[Sequence[Suite]]) -> list[SuiteResult]:
        """Runs all lanes. The output of a single lane goes to the terminal, else to files."""
        reset_child_signals()
        self._prepare = preexec_function()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._finished.update({suite.name: threading.Event() for lane in lanes for suite in lane})
        futures: list[Future[list[SuiteResult]]] = []
        with ThreadPoolExecutor(len(lanes)) as pool:
            while True:  # an interrupt may arrive during a submission too
                try:
                    for lane in lanes[len(futures) :]:
                        future = pool.submit(self._run_lane, lane, direct=len(lanes) == 1)
                        futures.append(future)
                    wait(futures)
                except KeyboardInterrupt:
                    self._interrupt()
                else:
                    break
        if self._interrupted:
            raise KeyboardInterrupt
        return [result for future in futures for result in future.result()]

    def _interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            for process in self._running:
                os.killpg(process.pid, signal.SIGINT)

    def _run_lane(self, lane: Sequence[Suite], *, direct: bool) -> list[SuiteResult]:
        results = []
        for suite in lane:
            if suite.after in self._finished:
                self._finished[suite.after].wait()
            try:
                results.append(self._run_suite(suite, direct=direct))
            finally:
                self._finished[suite.name].set()
            self.on_ended(results[-1])
        return results

    def _run_suite(self, suite: Suite, *, direct: bool) -> SuiteResult:
        started = time.monotonic()
        report, output = self.directory / f"{suite.name}.xml", self.directory / f"{suite.name}.log"
        report.unlink(missing_ok=True)
        with output.open("wb") as log:
            stream = None if direct else log
            codes = [
                self._run_command(_with_report(command, report), stream)
                for command in suite.commands()
            ]
        return read_result(
            suite.name, codes, time.monotonic() - started, report, None if direct else output
        )

    def _run_command(self, command: Sequence[str], log: IO[bytes] | None) -> int:
        """Runs a command; returns its exit code. It has its own session, so that a terminal's
        Ctrl-C reaches it once, from `_interrupt`."""
        with self._lock:
            if self._interrupted:
                return -signal.SIGINT
            process = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env={key: value for key, value in environment().items() if key != _NO_BYTECODE},
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self._prepare,
            )
            self._running.add(process)
        code = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert code is not None
        with self._lock:  # its pid is not reused before it is reaped
            self._running.remove(process)
            return process.wait()


def _with_report(command: Sequence[str], report: Path) -> list[str]:
    options = [f"--junit-xml={report}", "-o", "junit_family=xunit1"] if "pytest" in command else []
    return [*command, *options]
