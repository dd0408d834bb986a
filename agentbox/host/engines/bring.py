"""Bringing a box to what the manifest says, by the least that the changed keys need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.base import Engine, Running, Start
from agentbox.host.engines.shutdown import last_shutdown
from agentbox.host.engines.state import BoxRecord
from agentbox.plan.drift import drift

Need = Literal["nothing", "apply", "boot", "start", "recreate"]
Apply = Callable[[BoxRecord], bool]


@dataclass(frozen=True)
class Brought:
    """The box as it is now, and what was done, in words."""

    record: BoxRecord
    did: str


@dataclass(frozen=True)
class Needed:
    """What must happen, and the keys or the circumstance that ask for it."""

    need: Need
    because: str = ""


def needed(engine: Engine, start: Start, last: BoxRecord | None) -> Needed:
    """Compares what the box was started from with what it would be started from now."""
    running = engine.inspect(last) if last else Running("absent")
    if last is None or running.state == "absent":
        return Needed("start", "new")
    if not last.settled:
        return Needed("recreate", "an earlier change was not finished")
    if last.made_of != start.made_of:
        return Needed("recreate", "another image, project or option")
    found = drift(last.apply, start.plan.apply)
    if found.rebuild or found.recreate:
        return Needed("recreate", ", ".join([*found.rebuild, *found.recreate]))
    if running.state != "running":
        return Needed("recreate" if running.state == "restarting" else "start", running.state)
    if found.boot or not engine.same_secrets(start):
        return Needed("boot", ", ".join(found.boot) or "a secret changed")
    return Needed("apply", ", ".join(found.live)) if found.live else Needed("nothing")


def check(engine: Engine, start: Start, last: BoxRecord | None) -> None:
    """Raises AgentboxError for what would stop the start: exit 7 when the box runs under another engine, and what
    `Engine.check` names."""
    if last is not None and last.engine != engine.name:
        raise AgentboxError(
            f"cannot start the box {last.name} with {engine.name}: it was started with {last.engine}",
            "Run ./agentbox.sh down first.",
            exit_code=ExitCode.BUSY,
        )
    engine.check(start)


def bring(engine: Engine, start: Start, last: BoxRecord | None, *, apply_live: Apply, failed_boot: bool) -> Brought:
    """Does what is needed. `apply_live` asks the box to take its mounted manifest over; False = it could not.

    `failed_boot`: the box runs but its boot has failed, so it is booted again even if nothing changed. The record is
    unsettled for as long as the change takes. Raises AgentboxError (exit 6) when the engine fails.
    """
    found = needed(engine, start, last)
    if found.need in {"nothing", "apply"} and failed_boot:
        found = Needed("boot", "its boot had failed")
    if found.need == "nothing" and last is not None:
        return Brought(last, "unchanged")
    if last is not None:
        start.state.remember(replace(last, settled=False))
    record, did = _change(engine, start, last, found, apply_live)
    start.state.remember(record)
    return Brought(record, did)


def _change(
    engine: Engine, start: Start, last: BoxRecord | None, found: Needed, apply_live: Apply
) -> tuple[BoxRecord, str]:
    if last is None or found.need in {"start", "recreate"}:
        again = found.need == "recreate"
        ended = _end(engine, start, last)
        record = engine.start(replace(start, recreate=again))
        return record, f"recreated ({found.because}){ended}" if again else "started"
    if found.need == "apply":
        record = engine.rewrite(start, last)
        if apply_live(record):
            return record, f"applied in place ({found.because})"
    ended = _end(engine, start, last)
    return engine.refresh(start, last), f"booted again ({found.because}){ended}"


def _end(engine: Engine, start: Start, last: BoxRecord | None) -> str:
    """Stops what runs, whose log goes with it, and says how that ended and with which tasks."""
    if last is None or engine.inspect(last).state != "running":
        return ""
    engine.stop(last, start.plan.resources.stop_seconds)
    return f"; stopped before: {last_shutdown(engine, last).mark}"
