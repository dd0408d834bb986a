"""Brings a box to the state of the manifest with the smallest action that the changed keys need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.base import BoxStatus, Engine, StartSpec
from agentbox.host.engines.shutdown_outcome import last_shutdown
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.recording import amend, begin, start_failed, started
from agentbox.plan.drift import find_drift

ActionKind = Literal["nothing", "apply", "boot", "start", "recreate"]
ApplyLive = Callable[[BoxRecord], bool]


@dataclass(frozen=True)
class UpResult:
    """The box after `up`, and what was done."""

    record: BoxRecord
    summary: str


@dataclass(frozen=True)
class RequiredAction:
    """The action, and the keys or the circumstance that require it."""

    kind: ActionKind
    reason: str = ""


def required_action(engine: Engine, start: StartSpec, last: BoxRecord | None) -> RequiredAction:
    """Compares what the box was started from with what it would be started from now."""
    status = engine.inspect(last) if last else BoxStatus("absent")
    if last is None or status.state == "absent":
        return RequiredAction("start", "new")
    if not last.settled:
        return RequiredAction("recreate", "an earlier change was not completed")
    if dict(last.volumes) != dict(start.volumes):
        return RequiredAction("recreate", "other volumes")
    if last.made_of != start.made_of:
        return RequiredAction("recreate", "another image, project or option")
    changes = find_drift(last.apply, start.plan.apply)
    if changes.rebuild or changes.recreate:
        return RequiredAction("recreate", ", ".join([*changes.rebuild, *changes.recreate]))
    if status.state != "running":
        return RequiredAction("recreate" if status.state == "restarting" else "start", status.state)
    if changes.boot or not engine.secrets_match(start):
        return RequiredAction("boot", ", ".join(changes.boot) or "a secret changed")
    return (
        RequiredAction("apply", ", ".join(changes.live))
        if changes.live
        else RequiredAction("nothing")
    )


def check(engine: Engine, start: StartSpec, last: BoxRecord | None) -> None:
    """Raises AgentboxError if the start would fail: exit 7 if the box runs under another engine,
    and as `Engine.check`.
    """
    if last is not None and last.engine != engine.name:
        raise AgentboxError(
            f"cannot start the box {last.name} with {engine.name}: it was started with "
            f"{last.engine}",
            "Run ./agentbox.sh down first.",
            exit_code=ExitCode.BUSY,
        )
    engine.check(start)


def reconcile(
    engine: Engine,
    start: StartSpec,
    last: BoxRecord | None,
    *,
    apply_live: ApplyLive,
    failed_boot: bool,
) -> UpResult:
    """Performs the required action. `apply_live` asks the box to apply its mounted manifest; False
    = it could not.

    `failed_boot`: the boot of the running box has failed, so it is booted again even if nothing
    changed. The record is not settled during the change. Raises AgentboxError (exit 6) when the
    engine fails.
    """
    action = required_action(engine, start, last)
    if action.kind in {"nothing", "apply"} and failed_boot:
        action = RequiredAction("boot", "its boot had failed")
    if action.kind == "nothing" and last is not None:
        return UpResult(_adopt(engine, start, last), "unchanged")
    if last is not None:
        start.state.save_record(replace(last, settled=False))
    record, summary = _perform(engine, start, last, action, apply_live)
    start.state.save_record(record)
    return UpResult(record, summary)


def _adopt(engine: Engine, start: StartSpec, last: BoxRecord) -> BoxRecord:
    """Records the generation of a box that a release without generations started."""
    if last.generation:
        return last
    record = started(engine, start, begin(engine, start).number, last)
    start.state.save_record(record)
    return record


def _perform(
    engine: Engine,
    start: StartSpec,
    last: BoxRecord | None,
    action: RequiredAction,
    apply_live: ApplyLive,
) -> tuple[BoxRecord, str]:
    if last is None or action.kind in {"start", "recreate"}:
        recreate = action.kind == "recreate"
        ended = _stop_running(engine, start, last)
        generation = begin(engine, start)
        try:
            record = engine.start(replace(start, recreate=recreate))
        except AgentboxError as error:
            raise start_failed(start.state, generation.number, error) from error
        record = started(engine, start, generation.number, record)
        return record, f"recreated ({action.reason}){ended}" if recreate else "started"
    if action.kind == "apply":
        record = engine.rewrite(start, last)
        if apply_live(record):
            return amend(engine, start, record, last), f"applied in place ({action.reason})"
    ended = _stop_running(engine, start, last)
    record = amend(engine, start, engine.refresh(start, last), last)
    return record, f"booted again ({action.reason}){ended}"


def _stop_running(engine: Engine, start: StartSpec, last: BoxRecord | None) -> str:
    """Stops a running box, whose log is lost with it, and returns how it ended and with which
    tasks.
    """
    if last is None or engine.inspect(last).state != "running":
        return ""
    engine.stop(last, start.plan.resources.stop_seconds)
    return f"; stopped before: {last_shutdown(engine, last).summary}"
