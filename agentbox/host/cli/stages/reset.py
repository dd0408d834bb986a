"""The stages of `reset`: empty volumes beside the old ones, then the switch, or back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.new_volumes import discard, new_volumes, prepare_change, switch
from agentbox.host.generations.store import GenerationStore
from agentbox.host.restore import new_state
from agentbox.plan.names import BACKUPS, BRANCHES, STATE, WORKSPACE

if TYPE_CHECKING:
    from agentbox.host.engines.state import BoxRecord

KEPT = ("identities", "secrets", "backups")


@dataclass(frozen=True)
class Reset:
    """The box after it; `previous` is the generation that has the old volumes."""

    record: BoxRecord
    generation: int
    previous: int


def reset(cli: CliContext, kept: Collection[str], *, yes: bool) -> Reset:
    """Resets while the holder has the lock of the box. Raises AgentboxError: the old state runs
    again then, unless the message says otherwise.
    """
    name = cli.load_manifest().usable.meta.name
    current = GenerationStore(cli.state()).current()
    if current is None:
        raise _no_state(name)
    engine, spec = prepare_change(cli, current.engine, yes=yes)
    own_backups = cli.load_manifest().usable.backup.folder == BACKUPS and BACKUPS not in kept
    names = (STATE, BRANCHES, WORKSPACE, *((BACKUPS,) if own_backups else ()))
    change = new_volumes(cli, engine, spec, f"reset {name}", new_state.MODULE, names)
    before = GenerationStore(cli.state()).current_of(engine.name)
    if before is None or not change.has_present:
        raise _no_state(name)
    discard(cli, engine, change)
    try:
        with cli.out.stage("empty state") as stage:
            inside = [word for word in kept if word != BACKUPS]
            new_state.make_fresh(engine, change.shot, name, inside, change.present)
            stage.result = f"kept: {', '.join(kept) or 'nothing'}"
    except BaseException:
        discard(cli, engine, change)
        raise
    record = switch(cli, engine, spec, change)
    return Reset(record, record.generation, before.number)


def _no_state(name: str) -> AgentboxError:
    return AgentboxError(
        f"cannot reset {name}: it has no state yet",
        "Run ./agentbox.sh up, which starts it as at its first boot.",
        exit_code=ExitCode.USAGE,
    )
