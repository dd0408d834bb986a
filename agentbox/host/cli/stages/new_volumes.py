"""A box on new volumes, or on the old ones again: the end of `restore` and of `reset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.generation import confirm_start
from agentbox.host.cli.stages.preparation import prepare_start
from agentbox.host.cli.stages.start import UpOptions
from agentbox.host.cli.stages.trial_end import finish_trial
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.interrupts import deferred_interrupts
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.readiness import boot_lines
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.generations.recording import mark_bad
from agentbox.host.generations.store import GenerationStore

if TYPE_CHECKING:
    from agentbox.host.engines.base import StartSpec
    from agentbox.host.engines.state import BoxRecord


@frozen
class NewVolumes:
    """`made`: the new volumes by their name in the plan; `present`: those that the box has now,
    where they are not today's names. `shot` is a program on the new ones. `doing` is `restore
    <snapshot>` or `reset <box>`.
    """

    doing: str
    shot: OneShot
    made: Mapping[str, str]
    has_present: bool
    present: Mapping[str, str] = field(default_factory=dict)

    @property
    def volumes(self) -> dict[str, str]:
        """What the box is started on: the others stay with it."""
        return {**self.present, **self.made}


def prepare_change(cli: CliContext, engine_name: str, *, yes: bool) -> tuple[Engine, StartSpec]:
    """The engine, and how the box is started: as it runs now, else as `up` would. An upgrade that
    was interrupted is finished first.
    """
    finish_trial(cli)
    previous = cli.find_record()
    if previous is not None and previous.settled:
        return engine_by_name(previous.engine), start.restart_spec(
            cli, cli.load_manifest(), previous
        )
    return prepare_start(
        cli,
        engine_name,
        force_build=False,
        locked=False,
        yes=yes,
        options=UpOptions(),
        project=None,
    )


def new_volumes(
    cli: CliContext,
    engine: Engine,
    spec: StartSpec,
    doing: str,
    module: str,
    names: tuple[str, ...],
) -> NewVolumes:
    """Names for new volumes, of the next generation; what a killed command left there goes."""
    state, name = cli.state(), spec.plan.name
    store = GenerationStore(state)
    present, number = dict(store.volumes(engine.name)), store.next_number()
    made = {volume: f"{volume}-g{number}" for volume in names}
    shot = OneShot(
        name=name,
        state=state,
        module=module,
        image=spec.local_id or spec.image_ref,
        volumes=made,
        seconds=cli.timeout or 24 * 3600,
    )
    return NewVolumes(
        doing=doing,
        shot=shot,
        made=made,
        has_present=engine.has_state(name, state, present),
        present=present,
    )


def discard(cli: CliContext, engine: Engine, change: NewVolumes) -> None:
    """Removes what was made, or what a killed command left under these names."""
    engine.discard_volumes(change.shot.name, cli.state(), change.made)


def switch(
    cli: CliContext,
    engine: Engine,
    spec: StartSpec,
    change: NewVolumes,
    settle: Callable[[], None] | None = None,
    compare: Callable[[BoxRecord], None] | None = None,
) -> BoxRecord:
    """Stops the box, starts it on the new volumes, and goes back if it does not get ready, or if
    anything else ends it, such as Ctrl-C. `settle` is called in between, `compare` with
    the box that is ready: what it raises counts as not ready.
    """
    previous = cli.find_record()
    ran = previous is not None and engine.inspect(previous).state == "running"
    try:
        if previous is not None and ran:
            with cli.out.stage("stop") as stage:
                engine.stop(previous, spec.plan.resources.stop_seconds)
                stage.result = "stopped"
        if settle is not None:
            settle()
        record = _start(cli, engine, replace(spec, volumes=change.volumes))
        if compare is not None:
            compare(record)
    except BaseException as error:
        if not change.has_present or not (ran or isinstance(error, AgentboxError)):
            _forget_unstarted(cli, engine, change)
            raise
        with deferred_interrupts():
            _go_back(cli, engine, spec, change.doing, error)
        raise
    confirm_start(cli, record)
    return record


def _forget_unstarted(cli: CliContext, engine: Engine, change: NewVolumes) -> None:
    """Removes what was made for a box that never started, so that it can be tried again; one that
    started and is not ready is left for the operator.
    """
    store, volumes = GenerationStore(cli.state()), change.volumes
    current = store.current()
    if current is not None and dict(current.volumes) == volumes:
        return
    for row in store.rows():
        if dict(row.volumes) == volumes:
            store.remove(row.number)
    discard(cli, engine, change)


def _start(cli: CliContext, engine: Engine, spec: StartSpec) -> BoxRecord:
    start.forget_token(cli)  # that of a fresh state is another
    with cli.out.stage("start") as stage:
        result = start.bring_up(cli, engine, spec)
        stage.result = result.summary
    with cli.out.stage("ready") as stage:
        ready = start.wait_for_box(cli, engine, result.record)
        stage.result = f"boot {ready.verdict['boot_id'][:13]}"
    start.store_token(cli, result.record, spec)
    return result.record


def _go_back(
    cli: CliContext, engine: Engine, spec: StartSpec, doing: str, error: BaseException
) -> None:
    """Starts the old volumes again. Raises AgentboxError (exit 6), also when it has done so, but
    not for an error of another kind, which the caller raises again.
    """
    why = _reason(error)
    try:
        store, record = GenerationStore(cli.state()), cli.find_record()
        current = store.current()
        on_old = current is None or dict(current.volumes) == dict(spec.volumes)
        if current is not None and not on_old:
            mark_bad(store, current.number, why, boot_lines(engine, record) if record else [])
        if not (on_old and record is not None and engine.inspect(record).state == "running"):
            _start(cli, engine, spec)
    except (AgentboxError, OSError) as second:
        raise AgentboxError(
            f"cannot {doing}: {why}; and the old state did not start again: {_reason(second)}",
            "Both states are kept: agentbox generations. Run agentbox up once the reason is gone.",
            exit_code=ExitCode.ENGINE,
        ) from second
    if not isinstance(error, AgentboxError | OSError):
        cli.out.line("The old state runs again.")
        return
    raise AgentboxError(
        f"cannot {doing}: {why}",
        "The old state runs again. The new one is kept: agentbox generations.",
        exit_code=ExitCode.ENGINE,
    ) from error


def _reason(error: BaseException) -> str:
    if isinstance(error, AgentboxError):
        return error.message
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error) or type(error).__name__
