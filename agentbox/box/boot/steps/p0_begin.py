"""Phase 0: boot id, plan, state of the last shutdown, limits, test hooks."""

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from agentbox import __version__
from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.boot.journal_tail import last_record
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.boot_record import PreviousBoot, load_plan
from agentbox.box.supervision.current_boot import read_current
from agentbox.box.supervision.fault_hooks import FaultHooks, requested_hooks
from agentbox.box.supervision.sentinel import last_copy_sha256
from agentbox.core.ids import uuid7
from agentbox.core.linux import landlock_writes, procfs
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

PHASE, BUDGET_MS = "0", 60
_TRUE = ("1", "true")


def new_log(paths: Paths, env: Mapping[str, str]) -> BootEventLog:
    """A log with a new boot id; the plan digest is added once the plan is read."""
    return BootEventLog(paths, uuid7(), "", env.get("AGENTBOX_IMAGE_REF", ""))


def begin(paths: Paths, env: Mapping[str, str], log: BootEventLog) -> Context:
    """Creates the context. Raises BootError for an unreadable plan and for a run directory that
    cannot be written.
    """
    _clear_run_directory(paths, log)
    plan = load_plan(paths.plan)
    log = BootEventLog(paths, log.boot_id, plan.digest, log.image_ref)
    context = Context(
        paths=paths,
        env=env,
        log=log,
        baked=plan,
        plan=plan,
        plan_path=paths.plan,
        supervisord_conf=paths.supervisord_conf,
        probes_path=paths.probes,
        started=procfs.ticks_to_seconds(procfs.start_ticks(os.getpid()) or 0),
        strict=env.get("AGENTBOX_STRICT", "") in _TRUE,
        strict_root=env.get("AGENTBOX_STRICT_IMMUTABLE", "") in _TRUE,
        landlock_abi=landlock_writes.abi(),
        previous=_previous(paths),
    )
    _report_start(context)
    _load_hooks(context)
    lower_limits(plan)
    return context


def lower_limits(plan: Plan) -> None:
    """Disables core files and limits descriptors to the plan's number. A lower limit stays; posture
    reports it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    granted = plan.resources.nofile if unlimited else min(hard, plan.resources.nofile)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, granted))


def _clear_run_directory(paths: Paths, log: BootEventLog) -> None:
    """It is empty in a new container, but maybe not under the process engine or in a restarted
    container.
    """
    try:
        paths.run.mkdir(parents=True, exist_ok=True)
        for directory in (paths.ready_dir, paths.starts_dir, paths.moved_secrets, paths.run):
            _remove_files(directory)
        paths.ready_dir.mkdir(exist_ok=True)
        paths.starts_dir.mkdir(exist_ok=True)
    except OSError as error:
        log.emit("WritableRootFailed", path=str(Paths().run), errno=error.errno, free_bytes=0)
        raise BootError(
            f"cannot write {Paths().run}: {error.strerror}",
            "Start the box with the generated compose file.",
        ) from error


def _remove_files(directory: Path) -> None:
    if directory.is_dir():
        for path in directory.iterdir():
            if not path.is_dir():
                path.unlink()


def _previous(paths: Paths) -> PreviousBoot:
    current = read_current(paths)
    if current is None:
        return PreviousBoot()
    return PreviousBoot(
        boot_id=current.boot_id or None,
        sentinel_sha256=last_copy_sha256(paths),
        shutdown="clean" if current.state == "clean" else "unclean",
    )


def _report_start(context: Context) -> None:
    context.emit(
        "BootstrapStarted",
        version=__version__,
        kernel=os.uname().release,
        landlock_abi=context.landlock_abi,
        uid=os.getuid(),
        strict=context.strict,
        previous_shutdown=context.previous.shutdown,
    )
    if context.previous.shutdown != "unclean":
        return
    last = last_record(context.paths, context.plan)
    context.emit(
        "PreviousBootUnclean", previous_boot_id=context.previous.boot_id, last_seq=last.seq
    )
    if context.strict and last.torn:
        raise BootError(
            "cannot continue in strict mode: "
            f"the journal ends in the middle of a record ({last.file})",
            "Start once without --strict: the events slot then moves the incomplete record aside.",
        )


def _load_hooks(context: Context) -> None:
    names = requested_hooks(context.env)
    if context.plan.test_hooks:
        try:
            context.hooks = FaultHooks.from_environment(context.env)
        except ValueError as error:
            raise BootError(
                f"cannot use a test hook: {error}", "Fix or unset the variable."
            ) from error
        return
    for name in names:
        context.emit("TestHookIgnored", name=name)
    if names and context.strict:
        raise BootError(
            f"cannot continue in strict mode: {names[0]} is set, and this is not a test image",
            "Unset it, or build with `agentbox build --test-hooks`.",
        )
