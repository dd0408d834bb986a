"""Where a box of one name lives on this host, and whether a record names that and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.state import BoxRecord, BoxState

_SYSTEM_ROOT: Final = Path("/var/lib/agentbox-process")


def process_root(name: str, state: BoxState) -> Path:
    """The root of a process-engine box: in its state folder, or in a folder that uid 1000 can reach when root starts it."""
    return _SYSTEM_ROOT / name if os.geteuid() == 0 else state.directory / "root"


def check_record(record: BoxRecord, name: str, state: BoxState) -> None:
    """Raises AgentboxError (exit 1) for a record of something else than the box `name`: commands stop, overwrite and remove
    what a record names."""
    if foreign := _foreign_location(record, name, state):
        raise AgentboxError(
            f"cannot use {state.record_file}: it names {foreign}, which the box {name} does not own",
            "Remove that file and run the command again: a box that runs is found by its name.",
            exit_code=ExitCode.BAD,
        )


def _foreign_location(record: BoxRecord, name: str, state: BoxState) -> str:
    if record.name != name:
        return f"the box {record.name!r}"
    if record.engine == "process":
        roots = (
            _SYSTEM_ROOT / name,
            state.directory / "root",
        )  # it may have been started by root, or not
        return "" if _is_same_path(record.root, *roots) else f"the folder {record.root!r}"
    return (
        "" if _is_same_path(record.folder, state.compose_dir) else f"the folder {record.folder!r}"
    )


def _is_same_path(recorded: str, *candidates: Path) -> bool:
    """True for the absolute name of one of them; the folders above may be links, the place itself is none."""
    path = Path(recorded)
    return path.is_absolute() and any(
        path.name == candidate.name and path.parent.resolve() == candidate.parent.resolve()
        for candidate in candidates
    )
