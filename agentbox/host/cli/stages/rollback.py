"""`agentbox rollback`: an earlier generation runs again, on the present state or on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.going_back import (
    end_down,
    put_back,
    start_again,
    store_token_of,
    stores_of,
)
from agentbox.host.cli.stages.start import failure_reason, forget_token
from agentbox.host.engines.readiness import wait_until_ready
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.generations.counted_rows import ROWS
from agentbox.host.generations.record import BAD, GOOD, SUPERSEDED, Generation
from agentbox.host.generations.recording import now
from agentbox.host.generations.store import GenerationStore
from agentbox.host.generations.trial_steps import ROLLBACK


@dataclass(frozen=True)
class RollbackPlan:
    """`copies_of` is the generation whose rollback copies bring the state back, 0 = the state
    stays; `lost` says what would be lost, by name.
    """

    target: Generation
    current: Generation
    copies_of: int
    lost: Mapping[str, int]


def runs(generation: Generation | None) -> bool:
    """True if its box runs, or restarts."""
    record = None if generation is None else generation.record
    return record is not None and engine_by_name(record.engine).inspect(record).state in {
        "running",
        "restarting",
    }


def choose_target(
    store: GenerationStore, number: int | None, *, running: bool
) -> tuple[Generation, Generation]:
    """The generation to go to and the current one: a good one that does not run is started before
    an earlier one. Raises AgentboxError (exit 2)."""
    current = store.current()
    if current is None:
        raise AgentboxError(
            "cannot go back: there is no generation yet",
            "Run ./agentbox.sh up.",
            exit_code=ExitCode.USAGE,
        )
    if number is not None:
        target = store.get(number)
    elif not running and current.verdict != BAD and current.box:
        target = current
    else:
        found = _last_good_before(store, current)
        if found is None:
            raise AgentboxError(
                f"cannot go back from generation {current.number}: no earlier one is kept",
                "`agentbox generations` lists them.",
                exit_code=ExitCode.USAGE,
            )
        target = found
    if target.engine != current.engine:
        raise AgentboxError(
            f"cannot go back to generation {target.number}: it ran with {target.engine}, which has "
            f"data of its own; the present one is of {current.engine}",
            f"Run ./agentbox.sh down, then ./agentbox.sh up --engine {target.engine}.",
            exit_code=ExitCode.USAGE,
        )
    if target.number == current.number and running:
        raise AgentboxError(
            f"cannot go back to generation {target.number}: it is the one that runs",
            "`agentbox generations` lists the others.",
            exit_code=ExitCode.USAGE,
        )
    return target, current


def _last_good_before(store: GenerationStore, current: Generation) -> Generation | None:
    """Follows `before`; where that is not known, or no longer kept, the numbers."""
    rows = {row.number: row for row in store.rows()}
    number = current.number
    while number:
        named = rows[number].before
        number = named if named in rows else max((n for n in rows if n < number), default=0)
        row = rows.get(number)
        if row is not None and row.engine == current.engine and row.verdict != BAD and row.box:
            return row
    return None


def plan_rollback(
    cli: CliContext, target: Generation, current: Generation, *, state: bool
) -> RollbackPlan:
    """What going back takes. Raises AgentboxError: exit 2 if the release of the target cannot read
    the state and `state` is not set, 6 if no copy of what it reads is kept.
    """
    store, engine = GenerationStore(cli.state()), engine_by_name(target.engine)
    present = stores_of(cli, engine, target, current).states()
    beyond = {
        name: int(present[name]["migration"])
        for name, number in target.migrations.items()
        if name in present and int(present[name]["migration"]) > number
    }
    if not beyond:
        return RollbackPlan(target, current, 0, {})
    source = next(
        (
            row
            for row in store.rows()
            if row.number > target.number
            and row.volumes == target.volumes
            and (row.verdict != BAD or row.number == current.number)
            and set(beyond) <= {str(copy["name"]) for copy in row.copies}
        ),
        None,
    )
    stores = ", ".join(beyond)
    if source is None:
        raise AgentboxError(
            f"cannot go back to generation {target.number}: its release does not read {stores} "
            "as they are now, and no copy from before is kept",
            "Restore a backup of that time: agentbox restore.",
            exit_code=ExitCode.ENGINE,
        )
    before = source.noted.get("stores", {})
    lost = {
        names[1]: int(row["rows"]) - int(before.get(path, {}).get("rows") or 0)
        for path, names in ROWS.items()
        if (row := present.get(path)) is not None and row["rows"] is not None
    }
    plan = RollbackPlan(
        target, current, source.number, {name: n for name, n in lost.items() if n > 0}
    )
    if not state:
        raise AgentboxError(
            f"cannot go back to generation {target.number} with the present state: its release "
            f"does not read {stores}",
            f"--state puts back the copies made before generation {source.number}; that loses "
            f"{describe_loss(plan)}.",
            exit_code=ExitCode.USAGE,
        )
    return plan


def describe_loss(plan: RollbackPlan) -> str:
    """`3 beads and every change to the stores since then`."""
    singular = {plural: one for one, plural in ROWS.values()}
    counted = ", ".join(
        f"{count} {singular.get(name, name) if count == 1 else name}"
        for name, count in plan.lost.items()
    )
    return f"{counted + ' and ' if counted else ''}every change to the stores since then"


def roll_back(cli: CliContext, target: int, copies_of: int) -> Generation:
    """Starts the target; may be repeated after an interruption. Raises AgentboxError (exit 6) if it
    does not become ready."""
    store = GenerationStore(cli.state())
    current = store.current()
    assert current is not None
    row, engine = store.get(target), engine_by_name(current.engine)
    trial: dict[str, Any] = {
        "number": target,
        "previous": current.number,
        "step": ROLLBACK,
        "copies_of": copies_of,
        "at": now(),
    }
    store.set_trial(trial)
    model = cli.load_manifest().usable
    with cli.out.stage("stop") as stage:
        record = current.record
        if record is not None and engine.inspect(record).state in {"running", "restarting"}:
            engine.stop(record, model.resources.stop_seconds)
        stage.result = f"generation {current.number} stopped"
    with cli.out.stage("start") as stage:
        try:
            stores = stores_of(cli, engine, row, current, row)
            if copies_of:
                put_back(store, stores, copies_of)
            stores.unhold()
            forget_token(cli)  # that of another state is another
            started = replace(start_again(cli, row), generation=target)
        except AgentboxError as error:
            doing = f"go back to generation {target}"
            raise end_down(cli, doing, error, current.number) from error
        cli.state().save_record(started)
        result = wait_until_ready(
            engine_by_name(row.engine),
            started,
            model.upgrade.trial_seconds,
            lambda seconds, missing: cli.out.redraw(
                f"waiting {seconds:.1f} s  missing: {', '.join(missing)}"
            ),
        )
        if result.ready:
            store_token_of(cli, row, started)
        stage.result = f"generation {target}"
    reason = "" if result.ready else failure_reason(result)
    _record(store, current, row, asdict(started), reason)
    if reason:
        raise AgentboxError(
            f"cannot go back to generation {target}: it did not become ready: {reason}",
            f"Run ./agentbox.sh rollback {current.number} to return, or see ./agentbox.sh logs.",
            exit_code=ExitCode.ENGINE,
        )
    return store.get(target)


def _record(
    store: GenerationStore, current: Generation, target: Generation, box: dict[str, Any], why: str
) -> None:
    rows = []
    for row in store.rows():
        if row.number == target.number:
            rows.append(replace(row, verdict=BAD if why else GOOD, reason=why, box=box))
        elif row.number == current.number and row.verdict != BAD:
            rows.append(replace(row, verdict=SUPERSEDED))
        else:
            rows.append(row)
    store.replace_all(rows, target.number, {})
