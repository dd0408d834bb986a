"""`agentbox upgrade`: `up` with a net. The old generation works until the new one is prepared; the
new one is started held, tried, and released; if it is not good, the old one comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize
from agentbox.host.cli.stages.generation import keep_image
from agentbox.host.cli.stages.going_back import discard_copies, require_startable, stores_of
from agentbox.host.cli.stages.trial_checks import TrialFailed, check_generation
from agentbox.host.cli.stages.trial_end import go_back, release
from agentbox.host.engines.base import Engine, StartSpec
from agentbox.host.engines.readiness import query_ready
from agentbox.host.engines.reconcile import check
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.pruning import prune
from agentbox.host.generations.record import BAD, Generation
from agentbox.host.generations.recording import begin, describe, inputs_key, now, started
from agentbox.host.generations.store import GenerationStore
from agentbox.host.generations.trial_steps import LEFT, PREPARED, STARTING

_POLL_SECONDS: Final = 0.5


@frozen
class UpgradeOptions:
    """`wait_agents`: seconds to wait until no agent runs. `backup` makes the pre-upgrade backup and
    returns the snapshot's id. `named`: the new generation was named, so a bad one is tried again.
    `may_return` is asked before going back.
    """

    wait_agents: float
    backup: Callable[[], str]
    named: bool
    may_return: Callable[[str], bool]


def upgrade(
    cli: CliContext, engine: Engine, spec: StartSpec, last: BoxRecord, options: UpgradeOptions
) -> Generation:
    """Returns the good generation. Raises AgentboxError: exit 6 if it was not good."""
    store, table = GenerationStore(cli.state()), cli.load_manifest().usable.upgrade
    old = require_upgradable(cli, engine, spec, options)
    check(engine, spec, last)
    known = stores_of(cli, engine, old, describe(engine, spec)).known()  # the new release runs
    snapshot = options.backup()
    _wait_for_agents(cli, options.wait_agents)
    noted: dict[str, Any] = {
        "degraded": list(query_ready(last.api_url)[1].get("degraded", ())),
        **_journal_head(cli),
    }
    new = replace(begin(engine, spec), snapshot=snapshot)
    store.save(new)
    store.set_trial(
        {
            "number": new.number,
            "previous": old.number,
            "step": PREPARED,
            "at": now(),
            "trial_seconds": cli.timeout or table.trial_seconds,
        }
    )
    with cli.out.stage("stop") as stage:
        cli.state().save_record(replace(last, settled=False))
        engine.stop(last, spec.plan.resources.stop_seconds)
        stage.result = f"generation {old.number} stopped"
    try:
        new = _prepare_stores(cli, engine, old, new, noted, known)
    except AgentboxError:
        from agentbox.host.cli.stages.trial_end import finish_trial

        finish_trial(cli)
        raise
    try:
        with cli.out.stage("trial") as stage:
            record = _start_held(cli, engine, spec, new)
            migrations = check_generation(
                cli,
                engine,
                record,
                new.noted,
                trial_seconds=cli.timeout or table.trial_seconds,
                settle_seconds=table.settle_seconds,
            )
            stage.result = f"ready for {table.settle_seconds} s, held"
    except (TrialFailed, AgentboxError) as failed:
        reason = failed.message if isinstance(failed, AgentboxError) else str(failed)
        if options.may_return(reason):
            raise go_back(cli, reason) from failed
        store.set_trial({**store.trial(), "step": LEFT, "reason": reason})
        raise AgentboxError(
            f"cannot upgrade {spec.plan.name}: generation {new.number} is not good: {reason}; it "
            "was left as it is, held",
            "Run ./agentbox.sh rollback to go back, or ./agentbox.sh up to keep it.",
            exit_code=ExitCode.ENGINE,
        ) from failed
    release(cli, record, new.number, migrations)
    keep_image(cli, new)
    prune(store, table.keep_generations, partial(discard_copies, cli))
    return store.get(new.number)


def require_upgradable(
    cli: CliContext, engine: Engine, spec: StartSpec, options: UpgradeOptions
) -> Generation:
    """The generation to go back to. Raises AgentboxError if there is none, or if the new one was
    tried before and is bad."""
    store = GenerationStore(cli.state())
    old = store.current()
    if old is None or old.record is None:
        raise AgentboxError(
            f"cannot upgrade {spec.plan.name}: there is no generation to go back to",
            "Run ./agentbox.sh up once; upgrades after that have a net.",
        )
    require_startable(cli, old)
    key = inputs_key(engine.name, spec)
    if old.key == key:
        raise AgentboxError(
            f"cannot upgrade {spec.plan.name}: generation {old.number} is what the manifest and "
            "this release make, and it does not run",
            "Run ./agentbox.sh up, which starts it.",
        )
    for row in store.rows():
        if row.key == key and row.verdict == BAD and not options.named:
            raise AgentboxError(
                f"cannot upgrade {spec.plan.name}: this is generation {row.number}, which is bad: "
                f"{row.reason}",
                "Change the manifest or the release, or try it again: agentbox "
                f"upgrade --retry {row.number}.",
                exit_code=ExitCode.ENGINE,
            )
    return old


def _prepare_stores(
    cli: CliContext,
    engine: Engine,
    old: Generation,
    new: Generation,
    noted: dict[str, Any],
    known: dict[str, int],
) -> Generation:
    """Notes what the stores hold, copies those that will move, and holds the start."""
    from agentbox.api.stores import moving

    store = GenerationStore(cli.state())
    with cli.out.stage("stores") as stage:
        stores = stores_of(cli, engine, old, new)
        states = stores.states()
        numbers = {name: int(state["migration"]) for name, state in states.items()}
        moved = moving(numbers, known)
        new = replace(new, copies=stores.copy(new.number, moved), noted={"stores": states, **noted})
        store.save(new)
        store.save(replace(store.get(old.number), migrations=numbers))
        store.set_trial({**store.trial(), "noted": new.noted})
        stores.hold(new.number)
        stage.result = f"copied: {', '.join(moved) or 'none moves'}"
    return new


def _start_held(cli: CliContext, engine: Engine, spec: StartSpec, new: Generation) -> BoxRecord:
    store = GenerationStore(cli.state())
    store.set_trial({**store.trial(), "step": STARTING})
    record = engine.start(replace(spec, recreate=True))
    record = started(engine, spec, new.number, record)
    cli.state().save_record(record)
    return record


def _journal_head(cli: CliContext) -> dict[str, Any]:
    """Seq and hash of the last record; empty if the box does not answer, or is of a release
    without that route."""
    with suppress(AgentboxError), cli.client() as client:
        state = client.generation.show()
        return {"journal_seq": state.journal_seq, "journal_hash": state.journal_hash}
    return {}


def _wait_for_agents(cli: CliContext, seconds: float) -> None:
    """Raises AgentboxError (exit 7) if agents still run after that time."""
    if seconds <= 0:
        return
    deadline = time.monotonic() + seconds
    with cli.client() as client:
        while running := [
            agent
            for agent in client.call("list_agents")["items"]
            if agent["state"] in {"running", "starting"}
        ]:
            if time.monotonic() > deadline:
                raise AgentboxError(
                    f"cannot upgrade now: {pluralize(len(running), 'agent')} did not end in "
                    f"{seconds:.0f} s",
                    "Wait longer with --wait-agents, or leave it out: their tasks are released.",
                    exit_code=ExitCode.BUSY,
                )
            time.sleep(_POLL_SECONDS)
