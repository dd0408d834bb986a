"""Which generations are kept: the newest ones, pinned ones, the one that runs, and those that alone
know a volume. Images go with `old_images`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.generations.record import BAD, Generation
from agentbox.host.generations.store import GenerationStore
from agentbox.plan.names import BACKUPS, BRANCHES, STATE, WORKSPACE

VOLUMES: Final = (STATE, BRANCHES, WORKSPACE, BACKUPS)


def prune(store: GenerationStore, keep: int, discard: Callable[[Generation], None]) -> list[int]:
    """Forgets the generations beyond the newest `keep`; returns their numbers. `discard` removes
    the rollback copies of one."""
    removed = outdated(store, keep)
    for row in removed:
        if row.copies:
            discard(row)
        store.remove(row.number)
    return [row.number for row in removed]


def outdated(store: GenerationStore, keep: int) -> list[Generation]:
    """Those that may be forgotten, oldest first. Bad ones are counted apart: upgrades that fail do
    not push out what they went back to. What ran before the present one stays, however old it is:
    `rollback` goes there. One whose volumes no kept one has stays, because its record is all that
    says whose data they are.
    """
    rows, current = store.rows(), store.current()
    kept = {row.number for row in rows if row.pinned}
    for is_bad in (False, True):
        alike = [row.number for row in rows if (row.verdict == BAD) is is_bad]
        kept |= set(alike[-keep:])
    if current is not None:
        kept |= {current.number, current.before}
    kept |= {last.number for row in rows if (last := store.current_of(row.engine)) is not None}
    trial = store.trial()
    kept |= {int(trial[name]) for name in ("number", "previous") if trial.get(name)}
    for row in reversed(rows):
        if row.number not in kept and not volumes_of([row]) <= volumes_of(
            [other for other in rows if other.number in kept]
        ):
            kept.add(row.number)
    return [row for row in rows if row.number not in kept]


def volumes_of(rows: Collection[Generation]) -> set[tuple[str, str, str]]:
    """The volumes that they use: engine, name in the plan, name."""
    return {(row.engine, name, row.volume(name)) for row in rows for name in VOLUMES}


def orphaned_volumes(
    store: GenerationStore, numbers: Collection[int]
) -> list[tuple[str, str, str]]:
    """The volumes that no generation uses once these are forgotten: engine, name in the plan, and
    name."""
    rows = store.rows()
    gone = [row for row in rows if row.number in numbers]
    return sorted(volumes_of(gone) - volumes_of([row for row in rows if row not in gone]))


def require_removable(store: GenerationStore, number: int) -> Generation:
    """Raises AgentboxError (exit 2) for a generation that is pinned, runs, or is in trial."""
    generation, current, trial = store.get(number), store.current(), store.trial()
    if generation.pinned:
        why, hint = "it is pinned", f"Run `agentbox generations pin {number} --remove` first."
    elif current is not None and current.number == number:
        why, hint = "it is the one that runs", "Go to another one first: `agentbox rollback`."
    elif number in (trial.get("number"), trial.get("previous")):
        why, hint = "an upgrade is in trial", "Run `agentbox status`, which finishes it."
    else:
        return generation
    raise AgentboxError(f"cannot remove generation {number}: {why}", hint, exit_code=ExitCode.USAGE)
