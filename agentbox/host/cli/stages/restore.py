"""The stages of `restore`: a new state beside the old one, then the switch, or back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.generation import confirm_start
from agentbox.host.cli.stages.preparation import prepare_start
from agentbox.host.cli.stages.start import UpOptions
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.interrupts import deferred_interrupts
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.readiness import boot_lines
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.generations.recording import mark_bad
from agentbox.host.generations.store import GenerationStore
from agentbox.host.restore import new_state
from agentbox.host.restore.source import Source
from agentbox.plan.names import BRANCHES, STATE

if TYPE_CHECKING:
    from agentbox.host.engines.base import StartSpec
    from agentbox.host.engines.state import BoxRecord
    from agentbox.restoring.restore import RestoredState


@frozen
class RestoreRequest:
    """`other_box`: the box is another than that of the snapshot (`--into`)."""

    source: Source
    identities: Sequence[Any]
    box: str
    other_box: bool
    keep_tokens: bool
    engine_name: str
    yes: bool


@dataclass(frozen=True)
class Restored:
    """What was made, and the box that runs on it. `budgets_kept`: why its budgets are those of the
    snapshot, "" if what was spent since counts.
    """

    state: RestoredState
    record: BoxRecord
    generation: int
    budgets_kept: str = ""


def restore(cli: CliContext, request: RestoreRequest) -> Restored:
    """Restores while the holder has the lock of the box. Raises AgentboxError: what was there
    before runs again then, unless the message says otherwise.
    """
    previous = cli.find_record()
    engine, spec = _prepare(cli, request, previous)
    store, name = GenerationStore(cli.state()), request.box
    present, number = dict(store.volumes()), store.next_number()
    volumes = {STATE: f"{STATE}-g{number}", BRANCHES: f"{BRANCHES}-g{number}"}
    has_present = engine.has_state(name, cli.state(), present)
    if request.other_box and has_present:
        raise AgentboxError(
            f"cannot restore {request.source.name} into {name}: that box has a state",
            "Choose another name. `agentbox down --volumes` would remove that state, and the "
            "snapshots of that box with it.",
            exit_code=ExitCode.USAGE,
        )
    engine.discard_volumes(name, cli.state(), volumes)  # of a restore that was killed
    shot = OneShot(
        name=name,
        state=cli.state(),
        module=new_state.MODULE,
        image=spec.local_id or spec.image_ref,
        volumes=volumes,
        seconds=cli.timeout or 24 * 3600,
    )
    try:
        made = _make(cli, engine, shot, request)
    except BaseException:
        engine.discard_volumes(name, cli.state(), volumes)
        raise
    return _switch(cli, engine, spec, shot, made, present if has_present else None)


def _prepare(
    cli: CliContext, request: RestoreRequest, previous: BoxRecord | None
) -> tuple[Engine, StartSpec]:
    """The engine, and how the box is started: as it runs now, else as `up` would."""
    if previous is not None and previous.settled:
        return engine_by_name(previous.engine), start.restart_spec(
            cli, cli.load_manifest(), previous
        )
    return prepare_start(
        cli,
        request.engine_name,
        force_build=False,
        locked=False,
        yes=request.yes,
        options=UpOptions(),
        project=None,
    )


def _make(cli: CliContext, engine: Engine, shot: OneShot, request: RestoreRequest) -> RestoredState:
    from agentbox.restoring.restore import RestoreOptions

    head = request.source.head
    options = RestoreOptions(
        snapshot=request.source.name,
        box=request.box,
        new_identity=request.other_box,
        keep_tokens=request.keep_tokens,
        members=None if head is None else head.members,
    )
    with cli.out.stage("unpack") as stage:
        made = new_state.make(engine, shot, request.source, options, request.identities)
        if made.box != request.box and not request.other_box:
            raise other_box_error(cli.manifest, request.source.name, made.box, request.box)
        stage.result = f"{made.files} files, {made.size} bytes, checked"
    return made


def other_box_error(manifest: Path, snapshot: str, theirs: str, ours: str) -> AgentboxError:
    """Exit 2: the snapshot is of another box than the manifest names."""
    return AgentboxError(
        f"cannot restore {snapshot}: it is of the box {theirs}, and {manifest} names {ours}",
        f"Give the manifest of {theirs}, or make another box of it: --into {ours}",
        exit_code=ExitCode.USAGE,
    )


def _switch(
    cli: CliContext,
    engine: Engine,
    spec: StartSpec,
    shot: OneShot,
    made: RestoredState,
    present: Mapping[str, str] | None,
) -> Restored:
    """Stops the box, starts it on the new volumes, and goes back if it does not get ready, or if
    anything else ends it, such as Ctrl-C.
    """
    previous = cli.find_record()
    kept = ""
    ran = previous is not None and engine.inspect(previous).state == "running"
    try:
        if previous is not None and ran:
            with cli.out.stage("stop") as stage:
                engine.stop(previous, spec.plan.resources.stop_seconds)
                stage.result = "stopped"
        if present is not None:
            with cli.out.stage("settle") as stage:
                kept = new_state.settle(engine, shot, made.snapshot, present)
                stage.result = (
                    f"secrets are those of now, budgets those of the snapshot: {kept}"
                    if kept
                    else "budgets and secrets are those of now"
                )
        record = _start(cli, engine, replace(spec, volumes=shot.volumes))
    except BaseException as error:
        if present is None or not (ran or isinstance(error, AgentboxError)):
            _forget_unstarted(cli, engine, shot)
            raise
        with deferred_interrupts():
            _go_back(cli, engine, spec, made, error)
        raise
    confirm_start(cli, record)
    return Restored(made, record, record.generation, kept)


def _forget_unstarted(cli: CliContext, engine: Engine, shot: OneShot) -> None:
    """Removes what was made for a box that never started, so that it can be tried again; one that
    started and is not ready is left for the operator.
    """
    store = GenerationStore(cli.state())
    current = store.current()
    if current is not None and dict(current.volumes) == dict(shot.volumes):
        return
    for row in store.rows():
        if dict(row.volumes) == dict(shot.volumes):
            store.remove(row.number)
    engine.discard_volumes(shot.name, cli.state(), shot.volumes)


def _start(cli: CliContext, engine: Engine, spec: StartSpec) -> BoxRecord:
    with cli.out.stage("start") as stage:
        result = start.bring_up(cli, engine, spec)
        stage.result = result.summary
    with cli.out.stage("ready") as stage:
        ready = start.wait_for_box(cli, engine, result.record)
        stage.result = f"boot {ready.verdict['boot_id'][:13]}"
    start.store_token(cli, result.record, spec)
    return result.record


def _go_back(
    cli: CliContext, engine: Engine, spec: StartSpec, made: RestoredState, error: BaseException
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
            f"cannot restore {made.snapshot}: {why}; and the old state did not start "
            f"again: {_reason(second)}",
            "Both states are kept: agentbox generations. Run agentbox up once the reason is gone.",
            exit_code=ExitCode.ENGINE,
        ) from second
    if not isinstance(error, AgentboxError | OSError):
        cli.out.line("The old state runs again.")
        return
    raise AgentboxError(
        f"cannot restore {made.snapshot}: {why}",
        "The old state runs again. The restored one is kept: agentbox generations.",
        exit_code=ExitCode.ENGINE,
    ) from error


def _reason(error: BaseException) -> str:
    if isinstance(error, AgentboxError):
        return error.message
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error) or type(error).__name__
