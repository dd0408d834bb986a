"""What the repository of a branch was when its agent started."""

import os
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from agentbox.agents.review.commits.refs import RefRejected, read_refs
from agentbox.agents.review.copying import GIT
from agentbox.core.linux.openat2 import open_beneath


@dataclass(frozen=True, kw_only=True)
class GitStart:
    """`head` is the commit of HEAD, "" if there was none yet; `refs` every ref and its content.
    `problem`: why commits of this repository cannot be taken."""

    head: str = ""
    object_format: str = "sha1"
    refs: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


def read_start(branch: int, object_format: str) -> GitStart | None:
    """Of the repository at the root of a new branch, whose descriptor it is. None without one.
    Raises OSError."""
    try:
        descriptor = open_beneath(branch, GIT, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        refs = read_refs(descriptor)
    except RefRejected as error:
        return GitStart(object_format=object_format, problem=str(error))
    finally:
        os.close(descriptor)
    return GitStart(head=refs.tip, object_format=object_format, refs=refs.ids)
