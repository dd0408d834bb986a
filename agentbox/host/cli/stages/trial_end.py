"""The end of a trial: release, or return. Also that of one which was interrupted: each step is on
disk before it is taken, so whoever comes next finishes it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.going_back import end_down, put_back, start_again, stores_of
from agentbox.host.cli.stages.rollback import roll_back
from agentbox.host.cli.stages.start import failure_reason
from agentbox.host.cli.stages.trial_checks import TrialFailed, check_generation
from agentbox.host.engines.base import Engine
from agentbox.host.engines.readiness import boot_lines, wait_until_ready
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.record import BAD, GOOD, Generation
from agentbox.host.generations.recording import confirm
from agentbox.host.generations.store import GenerationStore
from agentbox.host.generations.trial_steps import (
    CONFIRMED,
    LEFT,
    PREPARED,
    RETURNING,
    ROLLBACK,
    STARTING,
    describe_left,
)

_LINES: Final = 20


def release(cli: CliContext, record: BoxRecord, number: int, migrations: dict[str, int]) -> None:
    """Ends the hold and marks the generation good. May be repeated."""
    from agentbox.client import BoxClient

    store = GenerationStore(cli.state())
    store.set_trial({**store.trial(), "step": CONFIRMED, "migrations": migrations})
    with BoxClient(record.api_url, token=cli.token(record)) as client:
        client.generation.release()
    confirm(store, number, migrations)


def go_back(cli: CliContext, reason: str) -> AgentboxError:
    """Starts the old generation again and marks the new one bad. Returns the error to raise.
    Raises AgentboxError (exit 6) with both reasons if the old one does not become ready either.
    """
    store = GenerationStore(cli.state())
    trial = store.trial()
    new, old = store.get(int(trial["number"])), store.get(int(trial["previous"]))
    engine = engine_by_name(old.engine)
    lines = list(trial.get("log", [])) or _last_lines(engine, new.record)
    store.set_trial({**trial, "step": RETURNING, "reason": reason, "log": lines})
    for record in (new.record, old.record):
        if record is not None and engine.inspect(record).state in {"running", "restarting"}:
            engine.stop(record, _stop_seconds(cli))
    doing = f"go back to generation {old.number}, since {new.number} is not good ({reason})"
    bad: dict[str, Any] = {"verdict": BAD, "reason": reason, "log": lines}
    current = store.current()
    try:
        if new.volumes == old.volumes:
            stores = stores_of(cli, engine, old, old, new)
            put_back(store, stores, new.number)
            stores.unhold()
        current = old
        record = start_again(cli, old)
    except AgentboxError as error:
        raise end_down(
            cli, doing, error, old.number if current is None else current.number, **bad
        ) from error
    cli.state().save_record(record)
    result = wait_until_ready(
        engine,
        record,
        float(trial["trial_seconds"]),
        lambda seconds, missing: cli.out.redraw(
            f"going back {seconds:.1f} s  missing: {', '.join(missing)}"
        ),
    )
    rows = [
        replace(row, **bad)
        if row.number == new.number
        else replace(row, box=asdict(record), verdict=GOOD if result.ready else row.verdict)
        if row.number == old.number
        else row
        for row in store.rows()
    ]
    store.replace_all(rows, old.number, {})
    if not result.ready:
        why = failure_reason(result)
        engine.stop(record, _stop_seconds(cli))
        return AgentboxError(
            f"cannot run {record.name}: generation {new.number} is not good ({reason}), and "
            f"generation {old.number} did not start again ({why}); the box is down",
            "See ./agentbox.sh logs, then ./agentbox.sh up.",
            exit_code=ExitCode.ENGINE,
        )
    return AgentboxError(
        f"cannot upgrade {record.name} to generation {new.number}: {reason}; generation "
        f"{old.number} runs again, and nothing was lost",
        f"See ./agentbox.sh generations show {new.number} for the last lines of its log.",
        exit_code=ExitCode.ENGINE,
    )


def finish_trial(cli: CliContext, *, keep: bool = False) -> str:
    """Finishes an upgrade that was interrupted; the caller holds the lock. Returns what was done,
    "" if there was none: ready means good, anything else goes back. A generation that was left as
    it is stays: with `keep` its trial ends, else AgentboxError (exit 7).
    """
    store = GenerationStore(cli.state())
    trial = store.trial()
    if not trial:
        return ""
    number, previous = int(trial["number"]), int(trial["previous"])
    new = store.get(number)
    if trial["step"] == LEFT:
        if not keep:
            raise AgentboxError(
                f"cannot change {cli.manifest_info.name} now: {describe_left(trial)}",
                "Run ./agentbox.sh rollback to go back, or ./agentbox.sh up to keep it.",
                exit_code=ExitCode.BUSY,
            )
        store.set_trial({})
        done = f"generation {number}, which was left in its trial, is kept if it becomes ready"
    elif trial["step"] == ROLLBACK:
        roll_back(cli, number, int(trial["copies_of"]))
        done = f"an interrupted rollback was finished: generation {number} runs"
    elif trial["step"] == PREPARED:
        _undo_preparation(cli, store, number, previous)
        done = f"an upgrade was interrupted before it began: generation {previous} runs"
    elif trial["step"] == CONFIRMED and new.record is not None:
        _release_confirmed(cli, new, dict(trial.get("migrations", {})))
        done = f"an interrupted upgrade was finished: generation {number} is good"
    else:
        done = _finish_started(cli, trial, new.record)
    cli.out.note(done)
    return done


def return_from_trial(cli: CliContext) -> bool:
    """For `rollback`: the generation before the trial runs again. Returns False if there is none,
    or if the new one was found good; it is finished then.
    """
    trial = GenerationStore(cli.state()).trial()
    if not trial or trial["step"] not in {STARTING, LEFT, RETURNING}:
        done = finish_trial(cli)
        return bool(done) and trial["step"] != CONFIRMED
    error = go_back(cli, str(trial.get("reason", "")) or "its trial was ended by a rollback")
    if "is down" in error.message:
        raise error
    return True


def _finish_started(cli: CliContext, trial: dict[str, Any], record: BoxRecord | None) -> str:
    number, previous = int(trial["number"]), int(trial["previous"])
    reason = str(trial.get("reason", ""))
    if trial["step"] == STARTING:
        try:
            if record is None:
                raise TrialFailed("its start was interrupted")
            migrations = check_generation(
                cli,
                engine_by_name(record.engine),
                record,
                trial.get("noted", {}),
                trial_seconds=float(trial["trial_seconds"]),
                settle_seconds=0,
            )
            release(cli, record, number, migrations)
            return f"an interrupted upgrade was finished: generation {number} is good"
        except TrialFailed as failed:
            reason = str(failed)
    error = go_back(cli, reason)
    if "is down" in error.message:
        raise error
    return f"an interrupted upgrade was undone ({reason}): generation {previous} runs again"


def _release_confirmed(cli: CliContext, new: Generation, migrations: dict[str, int]) -> None:
    """It was found good before the interruption; after a power cut it is started first."""
    record, engine = new.record, engine_by_name(new.engine)
    assert record is not None
    if engine.inspect(record).state != "running":
        record = start_again(cli, new)
        cli.state().save_record(record)
    trial = GenerationStore(cli.state()).trial()
    seconds = float(trial["trial_seconds"])
    result = wait_until_ready(engine, record, seconds, lambda _seconds, _missing: None)
    if not result.ready:
        raise AgentboxError(
            f"cannot finish the upgrade of {record.name}: generation {new.number} was found good, "
            f"and is not ready now: {failure_reason(result)}",
            "See ./agentbox.sh logs; the next command tries again.",
            exit_code=ExitCode.ENGINE,
        )
    release(cli, record, new.number, migrations)


def _undo_preparation(cli: CliContext, store: GenerationStore, number: int, previous: int) -> None:
    """The new generation never started: the old one continues, or starts again."""
    old, new = store.get(previous), store.get(number)
    engine, record = engine_by_name(old.engine), old.record
    if record is not None and engine.inspect(record).state in {"running", "restarting"}:
        engine.stop(record, _stop_seconds(cli))  # it may have started by itself, and be held
    try:
        stores = stores_of(cli, engine, old, old, new)
        stores.unhold()
        stores.discard(number)
        record = start_again(cli, old)
    except AgentboxError as error:
        raise end_down(cli, f"undo the upgrade of {cli.manifest_info.name}", error, previous) from (
            error
        )
    cli.state().save_record(replace(record, settled=True))
    result = wait_until_ready(
        engine, record, float(store.trial()["trial_seconds"]), lambda _seconds, _missing: None
    )
    rows = [
        replace(row, box=asdict(record)) if row.number == previous else row
        for row in store.rows()
        if row.number == previous or row.number != number
    ]
    store.replace_all(rows, previous, {})
    if not result.ready:
        raise AgentboxError(
            f"cannot undo the upgrade of {record.name}: generation {previous} started again, and "
            f"is not ready: {failure_reason(result)}",
            "See ./agentbox.sh logs, then run ./agentbox.sh up.",
            exit_code=ExitCode.ENGINE,
        )


def _last_lines(engine: Engine, record: BoxRecord | None) -> list[str]:
    if record is None or engine.inspect(record).state == "absent":
        return []
    return boot_lines(engine, record)[-_LINES:]


def _stop_seconds(cli: CliContext) -> int:
    return cli.load_manifest().usable.resources.stop_seconds
