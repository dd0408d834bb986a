"""`backup verify --rehearse`: a snapshot is restored into a throw-away box, which gets ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.new_volumes import prepare_change
from agentbox.host.cli.stages.rehearsal import rehearsal_box
from agentbox.host.cli.stages.restore import other_box_error
from agentbox.host.cli.stages.restored_checks import noted_of
from agentbox.host.cli.stages.trial_checks import TrialFailed
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.generations.store import GenerationStore
from agentbox.host.restore import new_state
from agentbox.host.restore.source import Source

if TYPE_CHECKING:
    from agentbox.client.state_report import StateReport
    from agentbox.host.engines.base import StartSpec
    from agentbox.restoring.restore import RestoredState


@frozen
class Rehearsed:
    """What was made of the snapshot, and what the ready box showed."""

    state: RestoredState
    report: StateReport


def rehearse_restore(cli: CliContext, source: Source, identities: Sequence[Any]) -> Rehearsed:
    """Raises AgentboxError: as `restore` before it stops anything, and exit 1 if the box that was
    made of the snapshot does not get ready, or does not show what is in it.
    """
    from agentbox.restoring.restore import RestoreOptions

    engine, spec = _inputs(cli)
    box, head = spec.plan.name, source.head
    options = RestoreOptions(
        snapshot=source.name, box=box, members=None if head is None else head.members
    )
    with rehearsal_box(cli, engine, spec) as rehearsal:
        with cli.out.stage("unpack") as stage:
            shot = rehearsal.shot(new_state.MODULE)
            made = new_state.make(engine, shot, source, options, identities)
            if made.box != box:
                raise other_box_error(cli.manifest, source.name, made.box, box)
            stage.result = f"{made.files} files, {made.size} bytes, checked"
        with cli.out.stage("rehearse") as stage:
            noted = noted_of(made, has_journal=spec.plan.slots["events"].use != "off")
            try:
                seconds = cli.timeout or cli.load_manifest().usable.upgrade.trial_seconds
                report = rehearsal.try_out(noted, seconds=seconds)
            except TrialFailed as failed:
                raise AgentboxError(
                    f"cannot rehearse {source.name}: a box of it is not good: {failed}",
                    "The box itself was not touched. `agentbox backup verify --deep` checks the "
                    "files of the snapshot; another snapshot may be good.",
                    exit_code=ExitCode.BAD,
                ) from failed
            stage.result = "ready"
    return Rehearsed(state=made, report=report)


def _inputs(cli: CliContext) -> tuple[Engine, StartSpec]:
    """The box that runs; where none does, the one that `up` would start."""
    record = cli.find_record()
    if record is not None and record.settled:
        spec = start.restart_spec(cli, cli.load_manifest(), record)
        return engine_by_name(record.engine), spec
    last = GenerationStore(cli.state()).current()
    with cli.state().exclusive_lock():
        return prepare_change(cli, "auto" if last is None else last.engine, yes=False)
