"""The stages of `restore`: a new state beside the old one, then the switch, or back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.new_volumes import (
    NewVolumes,
    discard,
    new_volumes,
    prepare_change,
    switch,
)
from agentbox.host.cli.stages.restored_checks import require_restored
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.restore import new_state
from agentbox.host.restore.source import Source
from agentbox.plan.names import BRANCHES, STATE

if TYPE_CHECKING:
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
    engine, spec = prepare_change(cli, request.engine_name, yes=request.yes)
    doing = f"restore {request.source.name}"
    change = new_volumes(cli, engine, spec, doing, new_state.MODULE, (STATE, BRANCHES))
    if request.other_box and change.has_present:
        raise AgentboxError(
            f"cannot restore {request.source.name} into {request.box}: that box has a state",
            "Choose another name. `agentbox down --volumes` would remove that state, and the "
            "snapshots of that box with it.",
            exit_code=ExitCode.USAGE,
        )
    discard(cli, engine, change)
    try:
        made = _make(cli, engine, change, request)
    except BaseException:
        discard(cli, engine, change)
        raise
    kept = ""

    def settle() -> None:
        nonlocal kept
        with cli.out.stage("settle") as stage:
            kept = new_state.settle(engine, change.shot, made.snapshot, change.present)
            stage.result = (
                f"secrets are those of now, budgets those of the snapshot: {kept}"
                if kept
                else "budgets and secrets are those of now"
            )

    def compare(record: BoxRecord) -> None:
        with cli.out.stage("compare") as stage:
            has_journal = spec.plan.slots["events"].use != "off"
            stage.result = require_restored(cli, record, made, has_journal=has_journal)

    settling = settle if change.has_present else None
    record = switch(cli, engine, spec, change, settling, compare)
    return Restored(made, record, record.generation, kept)


def _make(
    cli: CliContext, engine: Engine, change: NewVolumes, request: RestoreRequest
) -> RestoredState:
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
        made = new_state.make(engine, change.shot, request.source, options, request.identities)
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
