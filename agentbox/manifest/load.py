"""Reads agentbox.toml: bytes -> written and effective values, their positions, and findings."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from agentbox.core.canonical import digest
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key_path import KeyPath, to_text
from agentbox.manifest.findings import Finding
from agentbox.manifest.model import Model, build
from agentbox.manifest.positions import Position, key_positions, nearest_position
from agentbox.manifest.schema.quick_check import passes_quick_check
from agentbox.manifest.syntax import TOO_DEEP, SyntaxProblem, decode, parse_toml

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64


@frozen
class Manifest:
    """One manifest, valid or not. `written` is the parsed file. `usable` is its model without the
    `invalid` values, which the schema rejects. `positions` maps key paths to positions. `findings`
    are those of the file and the schema (E000, E016).
    """

    name: str
    raw: bytes
    written: Mapping[str, Any]
    usable: Model
    positions: Mapping[str, Position]
    findings: tuple[Finding, ...] = ()
    invalid: frozenset[str] = field(default_factory=frozenset)

    @property
    def effective(self) -> Model | None:
        """The model with defaults; None if the schema rejects the file."""
        return None if self.findings else self.usable

    @cached_property
    def digest(self) -> str:
        """`sha256:<hex>` of the file's bytes."""
        return digest(self.raw)

    def position_of(self, key: str) -> Position:
        """The position of a key; for an absent key that of the nearest written parent table, else
        1:1.
        """
        return nearest_position(self.positions, key)


def load(path: Path) -> Manifest:
    """Loads a file. Raises AgentboxError (exit 2) if it does not exist or cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise AgentboxError(
            f"cannot read {path}: no such file",
            "Name the manifest with --manifest FILE, or run in the directory that contains "
            "agentbox.toml.",
            exit_code=ExitCode.USAGE,
        ) from error
    except OSError as error:
        raise AgentboxError(
            f"cannot read {path}: {error.strerror}",
            "Make it a regular file that you may read.",
            exit_code=ExitCode.USAGE,
        ) from error
    return parse(data, str(path))


def parse(data: bytes, name: str, *, check: bool = True) -> Manifest:
    """Parses bytes; `name` is used in findings. `check=False` is for bytes that were validated
    before (the box compares their SHA-256): the schema is not read.
    """
    try:
        text = decode(data, MAX_BYTES)
        written = parse_toml(text)
        positions = _read_positions(text)
    except SyntaxProblem as problem:
        return Manifest(
            name=name,
            raw=data,
            written={},
            usable=Model(),
            positions={},
            findings=(problem.to_finding(),),
        )
    text_positions = {to_text(path): position for path, position in positions.items()}
    if not check or passes_quick_check(written):
        return Manifest(
            name=name, raw=data, written=written, usable=build(written), positions=text_positions
        )
    return _invalid_manifest(name, data, written, text_positions)


def _read_positions(text: str) -> dict[KeyPath, Position]:
    """Positions of keys. Raises SyntaxProblem for values or keys that are nested too deeply."""
    remedy = "Remove it: no key of a manifest is nested that deeply."
    try:
        positions = key_positions(text)
    except RecursionError as error:
        raise SyntaxProblem(f"not readable: {TOO_DEEP}", remedy) from error
    if too_deep := next(
        (position for path, position in positions.items() if len(path) > MAX_DEPTH), None
    ):
        raise SyntaxProblem(f"not readable: {TOO_DEEP}", remedy, *too_deep)
    return positions


def _invalid_manifest(
    name: str, data: bytes, written: dict[str, Any], positions: Mapping[str, Position]
) -> Manifest:
    from agentbox.manifest.schema.validator import (
        check,
    )  # imports jsonschema, which decides

    result = check(written, positions)
    return Manifest(
        name=name,
        raw=data,
        written=written,
        usable=build(_without(written, result.invalid)),
        positions=positions,
        findings=result.findings,
        invalid=frozenset(map(to_text, result.invalid)),
    )


def _without(written: Mapping[str, Any], paths: frozenset[KeyPath]) -> dict[str, Any]:
    """A copy without the values at those paths, which consist of names only."""
    result: dict[str, Any] = {}
    for name, value in written.items():
        if (name,) in paths:
            continue
        nested = frozenset(path[1:] for path in paths if path[0] == name)
        result[name] = _without(value, nested) if nested else value
    return result
