"""Changes of an agent: one record per path, and one digest of all."""

import hashlib
import json
from dataclasses import asdict, field
from typing import Any, Literal, Self

from agentbox.agents.review.commits.record import CommitsRecord
from agentbox.core.frozen import frozen

ChangeKind = Literal["added", "modified", "deleted"]


@frozen
class FileState:
    """A file or link, before or after. `mode` without setuid bits. `said`: SHA-256 of a file, "" if
    it is no longer known; the target of a link."""

    kind: Literal["file", "link"]
    mode: int
    size: int
    said: str


@frozen
class FileChange:
    """`path` is relative to the workspace, with bytes that are not UTF-8 as lone surrogates.
    `runs`: why it runs by itself, "" if nothing is known. `notes` are for people."""

    path: str
    what: ChangeKind
    old: FileState | None
    new: FileState | None
    runs: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        states = {
            name: None if data[name] is None else FileState(**data[name]) for name in ("old", "new")
        }
        return cls(**{**data, **states, "notes": tuple(data["notes"])})


@frozen
class SkippedPath:
    """A path of the branch that is never applied, and why."""

    path: str
    why: str


@frozen
class Review:
    """`changes` in display order: those that run by themselves first. `emptied`: directories that
    the agent removed. `workspace` is the directory that was copied; `sealed_at` in Unix seconds.
    `commits`: None if the workspace has no git repository."""

    agent_id: str
    name: str
    workspace: str
    sealed_at: float
    changes: tuple[FileChange, ...]
    left_out: tuple[SkippedPath, ...] = ()
    emptied: tuple[str, ...] = ()
    commits: CommitsRecord | None = None
    digest: str = field(default="", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "digest", hashlib.sha256(_canonical_json(self._digest_input())).hexdigest()
        )

    def _digest_input(self) -> dict[str, Any]:
        data = asdict(self)
        del data["digest"]
        if self.commits is None:  # as in reviews of earlier releases
            del data["commits"]
        return data

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Raises ValueError if the digest does not match."""
        commits = data.get("commits")
        review = cls(
            agent_id=data["agent_id"],
            name=data["name"],
            workspace=data["workspace"],
            sealed_at=data["sealed_at"],
            changes=tuple(FileChange.from_json(item) for item in data["changes"]),
            left_out=tuple(SkippedPath(**item) for item in data["left_out"]),
            emptied=tuple(data["emptied"]),
            commits=None if commits is None else CommitsRecord.from_json(commits),
        )
        if review.digest != data["digest"]:
            raise ValueError(f"the review of {data['agent_id']} has changed since it was sealed")
        return review


def _canonical_json(data: dict[str, Any]) -> bytes:
    """Canonical form. ASCII, since a path may contain bytes that are not text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode("ascii")
