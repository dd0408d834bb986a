"""Boxes of this user: their processes, files and state directories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.host.engines.locations import SYSTEM_ROOT
from agentbox.host.engines.process.box_processes import box_pids, kill_all
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxState
from agentbox.host.uninstall.files import remove, size_of
from agentbox.host.uninstall.inventory import Inventory, Item
from agentbox.host.uninstall.removal import Kept, Removal

# `_rehearsal`: the throw-away box of a rehearsal that was killed.
BOX_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}(_rehearsal)?")
_STOP_SECONDS: Final = 30
_KILL_SECONDS: Final = 5.0
_SECRETS, _ROOT = "secrets", "root"  # of a state directory; the root is that of a process engine
_NOT_VOLUMES: Final = ("run", "tmp", "opt", "etc")  # of a process root: made at each start


def box_states(inventory: Inventory) -> list[BoxState]:
    """The boxes of the inventory, and those that an earlier release left in the state root."""
    root = inventory.directory
    found = [path.parent.name for path in root.glob("*/up.lock")]
    names = {name for name in (*inventory.names("box"), *found) if BOX_NAME.fullmatch(name)}
    return [BoxState(root / name) for name in sorted(names)]


def process_roots(inventory: Inventory, states: list[BoxState]) -> list[Path]:
    """The roots of process-engine boxes; only at the two places where such a root can be, for what
    the inventory has may be damaged. A link is not a root that agentbox made.
    """
    noted = inventory.names("process-root")
    usual = [SYSTEM_ROOT / state.directory.name for state in states]
    inside = [state.directory / _ROOT for state in states]
    allowed = [
        SYSTEM_ROOT / name
        for name in (row.rpartition("/")[2] for row in noted)
        if BOX_NAME.fullmatch(name) and str(SYSTEM_ROOT / name) in noted
    ]
    found = {path for path in (*allowed, *usual, *inside) if path.is_dir()}
    return sorted(path for path in found if not path.is_symlink())


def process_removals(
    inventory: Inventory, states: list[BoxState], *, purge: bool
) -> Iterator[Removal | Kept]:
    """Stops the boxes of the process engine and removes their files."""
    records = {record.root: record for state in states if (record := state.record()) is not None}
    for root in process_roots(inventory, states):
        if box_pids(root):
            yield Removal(
                kind="processes",
                name=str(root),
                remove=partial(_stop, root, records.get(str(root))),
            )
        item = Item("process-root", str(root))
        if purge:
            yield Removal(
                kind="volumes",
                name=str(root),
                size=size_of(root),
                remove=partial(remove, root),
                items=(item,),
            )
            continue
        for name in _NOT_VOLUMES:
            if (root / name).exists():
                yield Removal(
                    kind="files",
                    name=str(root / name),
                    size=size_of(root / name),
                    remove=partial(remove, root / name),
                )
        kept = [path for path in sorted(root.iterdir()) if path.name not in _NOT_VOLUMES]
        for path in kept:
            yield Kept(kind="volume", name=str(path), size=size_of(path), reason="give --purge")


def state_removals(states: list[BoxState], *, purge: bool) -> Iterator[Removal | Kept]:
    """Removes the state directories; without `purge` secrets stay."""
    for state in states:
        item = Item("box", state.directory.name)
        if purge:
            yield Removal(
                kind="state",
                name=str(state.directory),
                size=size_of(state.directory),
                remove=partial(remove, state.directory),
                items=(item,),
            )
            continue
        kept = {_ROOT}
        if state.secrets_dir.is_dir() and any(state.secrets_dir.iterdir()):
            kept.add(_SECRETS)
            yield Kept(
                kind="secrets",
                name=str(state.secrets_dir),
                size=size_of(state.secrets_dir),
                reason="give --purge",
            )
        for path in sorted(state.directory.iterdir()) if state.directory.exists() else ():
            if path.name not in kept:
                yield Removal(
                    kind="state", name=str(path), size=size_of(path), remove=partial(remove, path)
                )


def _stop(root: Path, record: object) -> None:
    """Ends a box: its programs write what they have, for at most 30 s."""
    from agentbox.host.engines.state import BoxRecord

    if isinstance(record, BoxRecord):
        ProcessEngine().stop(record, _STOP_SECONDS)
    kill_all(root, _KILL_SECONDS)
