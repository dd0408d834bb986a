"""The generations of one box, in its state directory: `generations/index.json`, and a folder for
each with its manifest, plan, lock and the rendered files of its start.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.host.engines.state import BoxState, parse_record
from agentbox.host.generations.record import SUPERSEDED, TRIAL, Generation

MANIFEST, PLAN, LOCK, FILES = "agentbox.toml", "plan.json", "agentbox.lock", "files"
_INDEX = "index.json"


@dataclass(frozen=True)
class _Index:
    current: int = 0
    generations: list[dict[str, Any]] = field(default_factory=list)
    trial: dict[str, Any] = field(default_factory=dict)
    engines: dict[str, int] = field(default_factory=dict)  # what each engine started last


class GenerationStore:
    """Changes are made by the holder of `BoxState.exclusive_lock`, each in one atomic write."""

    def __init__(self, state: BoxState) -> None:
        self.state = state
        self.directory = state.directory / "generations"

    def rows(self) -> list[Generation]:
        """All generations, oldest first. Raises AgentboxError (exit 1) for a damaged index: it
        says which volumes have the data, so it is never replaced by an empty one."""
        index = self._read()
        rows = [parse_record(Generation, row) for row in index.generations]
        if any(row is None for row in rows):
            raise self._damaged()
        return [row for row in rows if row is not None]

    def get(self, number: int) -> Generation:
        """Raises AgentboxError (exit 2) for a number without a record."""
        for generation in self.rows():
            if generation.number == number:
                return generation
        known = ", ".join(str(row.number) for row in self.rows()) or "none"
        raise AgentboxError(
            f"cannot use generation {number} of {self.state.directory.name}: there is no record "
            "of it",
            f"Kept are: {known}. `agentbox generations` lists them.",
            exit_code=ExitCode.USAGE,
        )

    def current(self) -> Generation | None:
        """The generation that was started last; None before the first."""
        number = self._read().current
        return next((row for row in self.rows() if row.number == number), None)

    def current_of(self, engine: str) -> Generation | None:
        """The generation that an engine started last: each engine has data of its own."""
        index = self._read()
        number = index.engines.get(engine, index.current)
        rows = (row for row in self.rows() if row.number == number and row.engine == engine)
        return next(rows, None)

    def volumes(self, engine: str = "") -> Mapping[str, str]:
        """The volumes that are not today's names, of the current generation or of that engine's."""
        current = self.current_of(engine) if engine else self.current()
        return current.volumes if current is not None else {}

    def folder(self, number: int) -> Path:
        """Where its manifest, plan, lock and rendered files are."""
        return self.directory / str(number)

    def next_number(self) -> int:
        return max((row.number for row in self.rows()), default=0) + 1

    def save(self, generation: Generation, *, current: bool = False) -> None:
        """Adds or replaces one record; `current` makes it the one that runs."""
        rows = [row for row in self.rows() if row.number != generation.number]
        rows = sorted([*rows, generation], key=lambda row: row.number)
        index = self._read()
        self._write(rows, generation.number if current else index.current, index.trial)

    def confirm(self, number: int, **changes: Any) -> None:
        """Makes `number` the good and current one, and what was good before superseded; ends the
        trial."""
        rows = [
            replace(row, **changes)
            if row.number == number
            else replace(row, verdict=SUPERSEDED)
            if row.verdict in {"good", TRIAL}
            else row
            for row in self.rows()
        ]
        self._write(rows, number, {})

    def trial(self) -> dict[str, Any]:
        """The step of an upgrade or rollback that has not ended; empty if there is none."""
        return dict(self._read().trial)

    def set_trial(self, trial: Mapping[str, Any]) -> None:
        index = self._read()
        self._write(self.rows(), index.current, dict(trial))

    def replace_all(self, rows: list[Generation], current: int, trial: Mapping[str, Any]) -> None:
        """Writes several changes at once."""
        self._write(rows, current, dict(trial))

    def remove(self, number: int) -> None:
        """Forgets one generation; its folder goes first, so that none is left without a record."""
        with wrap_os_errors(f"remove {self.folder(number)}"):
            if self.folder(number).exists():
                shutil.rmtree(self.folder(number))
        index = self._read()
        self._write(
            [row for row in self.rows() if row.number != number], index.current, index.trial
        )

    def forget(self) -> None:
        """Removes every record, after the volumes were removed."""
        with wrap_os_errors(f"remove {self.directory}"):
            if self.directory.exists():
                shutil.rmtree(self.directory)

    def _read(self) -> _Index:
        path = self.directory / _INDEX
        with wrap_os_errors(f"read {path}"):
            if not path.exists():
                return _Index()
            data = path.read_bytes()
        try:
            index = parse_record(_Index, json.loads(data))
        except ValueError:
            index = None
        if index is None:
            raise self._damaged()
        return index

    def _write(self, rows: list[Generation], current: int, trial: dict[str, Any]) -> None:
        if current and current not in {row.number for row in rows}:
            raise AgentboxError(
                f"cannot record the generations of {self.state.directory.name}: the current one, "
                f"{current}, would have no record",
                "Report this as a defect of agentbox; nothing was changed.",
            )
        engines = {row.engine: row.number for row in rows if row.number == current}
        engines = {**self._read().engines, **engines}
        index = _Index(current, [asdict(row) for row in rows], trial, engines)
        with wrap_os_errors(f"make {self.directory}"):
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self.directory / _INDEX, json.dumps(asdict(index), indent=1) + "\n")
        sync_directory(self.directory)

    def _damaged(self) -> AgentboxError:
        return AgentboxError(
            f"cannot read the generations of {self.state.directory.name}: "
            f"{self.directory / _INDEX} is damaged",
            "Restore that file from a backup of this host. Without it, move the directory "
            "away: the next `up` then starts with the volumes `state` and `branches`.",
        )


def sync_directory(directory: Path) -> None:
    """Makes a rename in it survive a power cut. Raises AgentboxError (exit 3)."""
    with wrap_os_errors(f"write {directory}"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
