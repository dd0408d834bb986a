"""The seal: `python -m agentbox.box.seal.main`, run last and once. It fails closed and reports the
reason.

Nothing is written unless every required program of the plan runs and has notified, and the API
answers `/livez`.
"""

import sys
import time
from collections.abc import Sequence

from agentbox.box.boot.errors import BootError
from agentbox.box.boot.runner import read_phases, report_failure
from agentbox.box.seal.program_watcher import ProgramDied, ProgramReady, ProgramWatcher, TimedOut
from agentbox.box.seal.readiness_poller import http_ok
from agentbox.box.seal.sealed_timeline import sealed_timeline
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.boot_record import BootRecord, read_boot_record
from agentbox.box.supervision.boot_timeline import BootFailure, store_timeline
from agentbox.box.supervision.program_failures import last_program_failure
from agentbox.box.supervision.rpc import SupervisorClient
from agentbox.box.supervision.sentinel import SealedPhase, SealedProgram, Sentinel, write_sentinel
from agentbox.core import clock
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program

PHASE, BUDGET_MS = "seal", 80
TIMEOUT_SECONDS = 120.0
_LIVEZ_SECONDS = 2.0
_LOGS_FIX = "Read what that program logged: `agentbox logs`."


def main() -> int:
    """Returns 0 when the sentinel was written, else 1."""
    paths = Paths.for_this_process()
    log = BootEventLog(paths, "")
    try:
        record = _record(paths)
        log = record.log(paths)
        return Seal(paths, record, log).run()
    except Exception as error:  # noqa: BLE001  (every failure must end as one event)
        report_failure(log, PHASE, error)
        return 1


def _record(paths: Paths) -> BootRecord:
    record = read_boot_record(paths)
    if record is None:
        raise BootError("cannot seal the boot: boot.json is missing", "Restart the box.")
    return record


def required_programs(plan: Plan) -> tuple[Program, ...]:
    """The programs that the seal waits for. Raises BootError for an empty set, which would seal any
    boot.
    """
    if not plan.required_programs:
        raise BootError(
            "cannot seal the boot: the plan requires no program",
            "Build the image again: `agentbox build`.",
        )
    return plan.required_programs


class Seal:
    """One attempt to seal one boot."""

    def __init__(self, paths: Paths, record: BootRecord, log: BootEventLog) -> None:
        self._paths = paths
        self._record = record
        self._log = log
        self._timeout = record.hooks.seal_timeout or TIMEOUT_SECONDS
        self._started = time.monotonic()

    def run(self) -> int:
        """Returns the exit code. In strict mode a failed seal also stops the box."""
        try:
            plan = self._record.load_plan()
            required = required_programs(plan)
            self._log.emit(
                "BootstrapSealStarted",
                required_programs=[program.name for program in required],
                timeout_seconds=self._timeout,
            )
            with ProgramWatcher(
                self._paths, required, self._started + self._timeout, self._report_status
            ) as watcher:
                return self._wait_and_seal(plan, watcher)
        except Exception as error:  # noqa: BLE001  (every failure must end as one event)
            report_failure(self._log, PHASE, error)
            return self._fail()

    def _wait_and_seal(self, plan: Plan, watcher: ProgramWatcher) -> int:
        try:
            ready_programs = watcher.until_ready()
            last_ready = procfs.now()
            self._check_livez(plan)
        except TimedOut as timeout:
            self._log.emit(
                "BootstrapSealTimeout",
                waiting_for=list(timeout.waiting),
                timeout_seconds=self._timeout,
            )
            failure = BootFailure(PHASE, f"timed out waiting for {', '.join(timeout.waiting)}")
        except ProgramDied as death:
            reason, fix = last_program_failure(self._paths, death.name)
            failure = BootFailure(
                PHASE,
                f"cannot seal the boot: required program {death.name} ended "
                f"({reason or death.reason})",
            )
            report_failure(self._log, PHASE, BootError(failure.reason, fix or _LOGS_FIX))
        except BootError as error:
            failure = BootFailure(PHASE, error.message)
            report_failure(self._log, PHASE, error)
        else:
            self._write_sentinel(plan, watcher, ready_programs, last_ready)
            return 0
        store_timeline(
            self._paths, sealed_timeline(self._paths, self._record, plan, watcher, None, failure)
        )
        return self._fail()

    def _write_sentinel(
        self,
        plan: Plan,
        watcher: ProgramWatcher,
        ready_programs: Sequence[ProgramReady],
        last_ready: float,
    ) -> None:
        elapsed = round(procfs.now() - self._record.started, 3)
        sha256 = write_sentinel(self._paths, self._sentinel(plan, watcher, ready_programs, elapsed))
        sealed = procfs.now()
        self._log.emit(
            "BootstrapCompleted",
            sentinel=str(self._paths.sentinel),
            sentinel_sha256=sha256,
            elapsed_seconds=elapsed,
        )
        self._report_budget(round((sealed - last_ready) * 1000, 1))
        store_timeline(
            self._paths, sealed_timeline(self._paths, self._record, plan, watcher, sealed, None)
        )

    def _sentinel(
        self,
        plan: Plan,
        watcher: ProgramWatcher,
        ready_programs: Sequence[ProgramReady],
        elapsed: float,
    ) -> Sentinel:
        record = self._record
        return Sentinel(
            boot_id=record.boot_id,
            completed_at=clock.to_wire(clock.now()),
            elapsed_seconds=elapsed,
            digests=record.digests,
            programs=tuple(
                self._sealed_program(program, watcher, ready_programs) for program in plan.programs
            ),
            kernel_release=record.kernel_release,
            landlock_abi=record.landlock_abi,
            posture=record.posture,
            phases=tuple(
                SealedPhase(row["id"], row["ms"], row["budget_ms"])
                for row in read_phases(self._paths)
            ),
            previous=record.previous,
        )

    def _sealed_program(
        self, program: Program, watcher: ProgramWatcher, ready_programs: Sequence[ProgramReady]
    ) -> SealedProgram:
        """A required program as measured; any other as supervisord reports it now (pid 0 when it
        does not run).
        """
        proven = next((row for row in ready_programs if row.name == program.name), None)
        if proven is None:
            state = watcher.states().get(program.name)
            pid = state.pid if state else 0
            return SealedProgram(
                program.name, pid, procfs.start_ticks(pid) or 0, program.required, None
            )
        ready = None if proven.ready is None else round(proven.ready - self._record.started, 3)
        return SealedProgram(program.name, proven.pid, proven.start_ticks, program.required, ready)

    def _check_livez(self, plan: Plan) -> None:
        url = f"http://{self._host(plan)}:{plan.api.port}/livez"
        if not http_ok(url, _LIVEZ_SECONDS):
            raise BootError("cannot seal the boot: the API does not answer /livez", _LOGS_FIX)

    def _host(self, plan: Plan) -> str:
        """In a container the API listens on every address, under the process engine on the
        published one.
        """
        address = plan.api.publish_address
        if self._paths.is_container or address in ("0.0.0.0", "::"):
            return "127.0.0.1"
        return f"[{address}]" if ":" in address else address

    def _report_status(self, program: str, status: str) -> None:
        elapsed = round(time.monotonic() - self._started, 3)
        self._log.emit("WaitingForProgram", program=program, status=status, elapsed_seconds=elapsed)

    def _report_budget(self, ms: float) -> None:
        self._log.emit("PhaseCompleted", phase=PHASE, ms=ms, budget_ms=BUDGET_MS)
        if ms > BUDGET_MS:
            self._log.emit("BootPhaseSlow", phase=PHASE, ms=ms, budget_ms=BUDGET_MS)

    def _fail(self) -> int:
        """The box stays up, unsealed, for inspection; in strict mode it stops."""
        if self._record.strict:
            SupervisorClient(self._paths).shutdown()
        return 1


if __name__ == "__main__":
    sys.exit(main())
