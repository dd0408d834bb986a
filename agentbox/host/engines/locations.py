"""The paths of a box on this host, and the check that a record points to them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.state import BoxRecord, BoxState

SYSTEM_ROOT: Final = Path("/var/lib/agentbox-process")


def process_root(name: str, state: BoxState) -> Path:
    """The root of a process-engine box: in its state directory, or in one that uid 1000 can reach
    when root starts it.
    """
    return SYSTEM_ROOT / name if os.geteuid() == 0 else state.directory / "root"


def rehearsal_of(state: BoxState) -> BoxState:
    """Of its throw-away box; no manifest can give a box this name."""
    return BoxState(state.directory.with_name(f"{state.directory.name}_rehearsal"))


def check_record(record: BoxRecord, name: str, state: BoxState) -> None:
    """Raises AgentboxError (exit 1) for a record that does not belong to the box `name`: commands
    stop, overwrite and remove what a record points to.
    """
    if foreign := _foreign_location(record, name, state):
        raise AgentboxError(
            f"cannot use {state.record_file}: it points to {foreign}, which does not belong to "
            f"the box {name}",
            "Remove that file and run the command again: a running box is found by its name.",
            exit_code=ExitCode.BAD,
        )


def _foreign_location(record: BoxRecord, name: str, state: BoxState) -> str:
    if record.name != name:
        return f"the box {record.name!r}"
    if record.engine == "process":
        roots = (
            SYSTEM_ROOT / name,
            state.directory / "root",
        )  # it may have been started by root, or not
        return "" if _is_same_path(record.root, *roots) else f"the directory {record.root!r}"
    return (
        ""
        if _is_same_path(record.folder, state.compose_dir)
        else f"the directory {record.folder!r}"
    )


def _is_same_path(recorded: str, *candidates: Path) -> bool:
    """True if `recorded` is the absolute path of a candidate; parent directories may be links, the
    path itself may not.
    """
    path = Path(recorded)
    return path.is_absolute() and any(
        path.name == candidate.name and path.parent.resolve() == candidate.parent.resolve()
        for candidate in candidates
    )
