"""Reads agentbox.toml: bytes -> what is written, what it means, where it stands, and what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from agentbox.core.canonical import digest
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.manifest.findings import Finding
from agentbox.manifest.keypath import KeyPath, to_text
from agentbox.manifest.model import Model, build
from agentbox.manifest.positions import Position, locate
from agentbox.manifest.schema.quick_check import fits
from agentbox.manifest.syntax import TOO_DEEP, SyntaxProblem, decode, toml

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
_NOWHERE: Final = Position(1, 1)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One manifest, valid or not.

    `written` is what the file says. `usable` is the model of it without the `withdrawn` values, those that the schema
    refuses. `where` maps key paths to places. `findings` are those of the file and the schema (E000, E016).
    """

    name: str
    raw: bytes
    written: Mapping[str, Any]
    usable: Model
    where: Mapping[str, Position]
    findings: tuple[Finding, ...] = ()
    withdrawn: frozenset[str] = field(default_factory=frozenset)

    @property
    def effective(self) -> Model | None:
        """The model with defaults; None when the file does not fit the schema."""
        return None if self.findings else self.usable

    @cached_property
    def digest(self) -> str:
        """`sha256:<hex>` of the file's bytes."""
        return digest(self.raw)

    def place(self, key: str) -> Position:
        """Where a key is written; for an absent key the nearest written parent table, else 1:1."""
        while key:
            if key in self.where:
                return self.where[key]
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return _NOWHERE


def load(path: Path) -> Manifest:
    """The manifest in that file. Raises AgentboxError (exit 2) when there is none or it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise AgentboxError(
            f"cannot read {path}: no such file",
            "Name the manifest with --manifest FILE, or run in the folder that holds agentbox.toml.",
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
    """The manifest in those bytes; `name` is how findings call it.

    `check=False` is for bytes that were validated before (the box compares their SHA-256): no schema is read.
    """
    try:
        text = decode(data, MAX_BYTES)
        written = toml(text)
        positions = _places(text)
    except SyntaxProblem as problem:
        return Manifest(name=name, raw=data, written={}, usable=Model(), where={}, findings=(problem.finding(),))
    where = {to_text(path): place for path, place in positions.items()}
    if not check or fits(written):
        return Manifest(name=name, raw=data, written=written, usable=build(written), where=where)
    return _refused(name, data, written, where)


def _places(text: str) -> dict[KeyPath, Position]:
    """Where keys are. Raises SyntaxProblem for values or keys that lie deeper than any reader of them can follow."""
    remedy = "No key of a manifest lies that deep; remove it."
    try:
        positions = locate(text)
    except RecursionError as error:
        raise SyntaxProblem(f"not readable: {TOO_DEEP}", remedy) from error
    if deep := next((place for path, place in positions.items() if len(path) > MAX_DEPTH), None):
        raise SyntaxProblem(f"not readable: {TOO_DEEP}", remedy, *deep)
    return positions


def _refused(name: str, data: bytes, written: dict[str, Any], where: Mapping[str, Position]) -> Manifest:
    from agentbox.manifest.schema.validator import check  # brings jsonschema, which has the last word

    bare = Manifest(name=name, raw=data, written=written, usable=Model(), where=where)
    verdict = check(bare)
    return Manifest(
        name=name,
        raw=data,
        written=written,
        usable=build(_without(written, verdict.withdrawn)),
        where=where,
        findings=verdict.findings,
        withdrawn=frozenset(map(to_text, verdict.withdrawn)),
    )


def _without(written: Mapping[str, Any], paths: frozenset[KeyPath]) -> dict[str, Any]:
    """A copy without the values at those paths. Every path consists of names only."""
    kept: dict[str, Any] = {}
    for name, value in written.items():
        if (name,) in paths:
            continue
        below = frozenset(path[1:] for path in paths if path[0] == name)
        kept[name] = _without(value, below) if below else value
    return kept
