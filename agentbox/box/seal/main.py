"""The seal: `python -m agentbox.box.seal.main`, run last and once. It fails closed, and says why.

Nothing is written unless every required program of the plan runs and said so, and the API answers `/livez`.
"""

import sys
import time
from collections.abc import Sequence

from agentbox.box.boot.errors import BootError
from agentbox.box.boot.runner import read_phases, tell_failure
from agentbox.box.seal.knock import http_ok
from agentbox.box.seal.sealed_timeline import timeline_of
from agentbox.box.seal.watch import ProgramDied, Running, TimedOut, Watch
from agentbox.box.supervision.boot_record import BootRecord, read_boot_record
from agentbox.box.supervision.events import BootLog
from agentbox.box.supervision.failing import why_failed
from agentbox.box.supervision.rpc import SupervisorClient
from agentbox.box.supervision.sentinel import SealedPhase, SealedProgram, Sentinel, write_sentinel
from agentbox.box.supervision.timeline import Failure, keep_timeline
from agentbox.core import clock
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program

PHASE, BUDGET_MS = "seal", 80
TIMEOUT_SECONDS = 120.0
_LIVEZ_SECONDS = 2.0
_LOGS_FIX = "Read what that program logged: `agentbox logs`."


def main() -> int:
    """0 when the sentinel was written, else 1 and no sentinel."""
    paths = Paths.of_this_process()
    log = BootLog(paths, "")
    try:
        record = _record(paths)
        log = record.log(paths)
        return Seal(paths, record, log).run()
    except Exception as error:  # noqa: BLE001  (every failure must leave as one event; nothing is hidden)
        tell_failure(log, PHASE, error)
        return 1


def _record(paths: Paths) -> BootRecord:
    record = read_boot_record(paths)
    if record is None:
        raise BootError("cannot seal the boot: boot.json is missing", "Start the box anew.")
    return record


def required_programs(plan: Plan) -> tuple[Program, ...]:
    """Whom the seal waits for. Raises BootError for an empty set: that would seal anything."""
    if not plan.required_programs:
        raise BootError(
            "cannot seal the boot: the plan requires no program", "Build the image again: `agentbox build`."
        )
    return plan.required_programs


class Seal:
    """One attempt to seal one boot."""

    def __init__(self, paths: Paths, record: BootRecord, log: BootLog) -> None:
        self._paths = paths
        self._record = record
        self._log = log
        self._timeout = record.hooks.seal_timeout or TIMEOUT_SECONDS
        self._begun = time.monotonic()

    def run(self) -> int:
        """The exit code. Under strict a seal that fails, for whatever reason, also stops the box."""
        try:
            plan = self._record.load_plan()
            required = required_programs(plan)
            self._log.emit(
                "BootstrapSealStarted",
                required_programs=[program.name for program in required],
                timeout_seconds=self._timeout,
            )
            with Watch(self._paths, required, self._begun + self._timeout, self._tell) as watch:
                return self._judge(plan, watch)
        except Exception as error:  # noqa: BLE001  (every failure must leave as one event; nothing is hidden)
            tell_failure(self._log, PHASE, error)
            return self._give_up()

    def _judge(self, plan: Plan, watch: Watch) -> int:
        try:
            running = watch.until_ready()
            last_ready = procfs.now()
            self._ask_livez(plan)
        except TimedOut as late:
            self._log.emit("BootstrapSealTimeout", waiting_for=list(late.waiting), timeout_seconds=self._timeout)
            failure = Failure(PHASE, f"timed out waiting for {', '.join(late.waiting)}")
        except ProgramDied as died:
            why, fix = why_failed(self._paths, died.name)
            failure = Failure(PHASE, f"cannot seal the boot: required program {died.name} ended ({why or died.how})")
            tell_failure(self._log, PHASE, BootError(failure.reason, fix or _LOGS_FIX))
        except BootError as error:
            failure = Failure(PHASE, error.message)
            tell_failure(self._log, PHASE, error)
        else:
            self._write(plan, watch, running, last_ready)
            return 0
        keep_timeline(self._paths, timeline_of(self._paths, self._record, plan, watch, None, failure))
        return self._give_up()

    def _write(self, plan: Plan, watch: Watch, running: Sequence[Running], last_ready: float) -> None:
        elapsed = round(procfs.now() - self._record.started, 3)
        sha256 = write_sentinel(self._paths, self._sentinel(plan, watch, running, elapsed))
        sealed = procfs.now()
        self._log.emit(
            "BootstrapCompleted", sentinel=str(self._paths.sentinel), sentinel_sha256=sha256, elapsed_seconds=elapsed
        )
        self._tell_budget(round((sealed - last_ready) * 1000, 1))
        keep_timeline(self._paths, timeline_of(self._paths, self._record, plan, watch, sealed, None))

    def _sentinel(self, plan: Plan, watch: Watch, running: Sequence[Running], elapsed: float) -> Sentinel:
        record = self._record
        return Sentinel(
            boot_id=record.boot_id,
            completed_at=clock.to_wire(clock.now()),
            elapsed_seconds=elapsed,
            digests=record.digests,
            programs=tuple(self._sealed(program, watch, running) for program in plan.programs),
            kernel_release=record.kernel_release,
            landlock_abi=record.landlock_abi,
            posture=record.posture,
            phases=tuple(SealedPhase(row["id"], row["ms"], row["budget_ms"]) for row in read_phases(self._paths)),
            previous=record.previous,
        )

    def _sealed(self, program: Program, watch: Watch, running: Sequence[Running]) -> SealedProgram:
        """A required program as it was proven; any other as supervisord has it now (pid 0 when it does not run)."""
        found = next((row for row in running if row.name == program.name), None)
        if found is None:
            state = watch.states().get(program.name)
            pid = state.pid if state else 0
            return SealedProgram(program.name, pid, procfs.start_ticks(pid) or 0, program.required, None)
        ready = None if found.ready is None else round(found.ready - self._record.started, 3)
        return SealedProgram(program.name, found.pid, found.start_ticks, program.required, ready)

    def _ask_livez(self, plan: Plan) -> None:
        url = f"http://{self._host(plan)}:{plan.api.port}/livez"
        if not http_ok(url, _LIVEZ_SECONDS):
            raise BootError("cannot seal the boot: the API does not answer /livez", _LOGS_FIX)

    def _host(self, plan: Plan) -> str:
        """In a container the API listens on every address, under the process engine where it is published."""
        address = plan.api.publish_address
        if self._paths.contained or address in ("0.0.0.0", "::"):
            return "127.0.0.1"
        return f"[{address}]" if ":" in address else address

    def _tell(self, program: str, status: str) -> None:
        elapsed = round(time.monotonic() - self._begun, 3)
        self._log.emit("WaitingForProgram", program=program, status=status, elapsed_seconds=elapsed)

    def _tell_budget(self, ms: float) -> None:
        self._log.emit("PhaseCompleted", phase=PHASE, ms=ms, budget_ms=BUDGET_MS)
        if ms > BUDGET_MS:
            self._log.emit("BootPhaseSlow", phase=PHASE, ms=ms, budget_ms=BUDGET_MS)

    def _give_up(self) -> int:
        """The box stays up, unsealed, for inspection; under strict it stops."""
        if self._record.strict:
            SupervisorClient(self._paths).shutdown()
        return 1


if __name__ == "__main__":
    sys.exit(main())
