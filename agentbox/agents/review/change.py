"""What an agent changed: one record a path, and the whole of it under one digest."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

What = Literal["added", "modified", "deleted"]


@dataclass(frozen=True, kw_only=True)
class Side:
    """A file or link as it was or is. `mode` without setuid bits. `said`: SHA-256 of a file's bytes, "" where it cannot be
    known any more; where a link leads."""

    kind: Literal["file", "link"]
    mode: int
    size: int
    said: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """`path` is relative to the workspace, bytes that are no UTF-8 as lone surrogates. `runs` says what runs it by itself
    where it lands, "" for nothing known. `notes` are for people."""

    path: str
    what: What
    old: Side | None
    new: Side | None
    runs: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        sides = {name: None if data[name] is None else Side(**data[name]) for name in ("old", "new")}
        return cls(**{**data, **sides, "notes": tuple(data["notes"])})


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A path of the branch that is never taken, and why."""

    path: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Review:
    """`changes` in the order in which they are shown: what runs by itself first. `emptied`: folders that the agent removed.
    `workspace` is the folder that the branch is a copy of; `sealed_at` in Unix seconds."""

    agent_id: str
    name: str
    workspace: str
    sealed_at: float
    changes: tuple[Change, ...]
    left_out: tuple[LeftOut, ...] = ()
    emptied: tuple[str, ...] = ()
    digest: str = field(default="", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha256(_spelled(self._said())).hexdigest())

    def _said(self) -> dict[str, Any]:
        said = asdict(self)
        del said["digest"]
        return said

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Raises ValueError for a record that does not have its own digest."""
        found = cls(
            agent_id=data["agent_id"], name=data["name"], workspace=data["workspace"], sealed_at=data["sealed_at"],
            changes=tuple(Change.from_json(one) for one in data["changes"]),
            left_out=tuple(LeftOut(**one) for one in data["left_out"]), emptied=tuple(data["emptied"]),
        )  # fmt: skip
        if found.digest != data["digest"]:
            raise ValueError(f"the review of {data['agent_id']} is not the one that was sealed")
        return found


def _spelled(said: dict[str, Any]) -> bytes:
    """One spelling of it. ASCII, since a path may hold bytes that are no text."""
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii")
