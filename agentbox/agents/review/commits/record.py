"""The commits of a branch, as stored with its review: one record, which the digest covers."""

from dataclasses import field
from typing import Any, Final, Literal, Self

from agentbox.core.frozen import frozen

CommitsError = Literal["", "no-repository", "history-left-out", "objects-bad", "ref-refused"]
FileName = Literal["listing", "bundle", "patches", "rest-bundle", "rest-patches"]
FILES: Final[tuple[FileName, ...]] = (
    "listing",
    "bundle",
    "patches",
    "rest-bundle",
    "rest-patches",
)


@frozen
class LeftOut:
    """Something of the repository that is never taken, and why."""

    what: str
    why: str


@frozen
class StoredFile:
    """A file made from the commits."""

    sha256: str
    size: int


@frozen
class CommitsRecord:
    """`error`: why no commit can be taken, with `detail`; the rest is empty then, but for
    `left_out`. `start` is the commit of HEAD when the agent started, `tip` that at its end, and
    `ref` the branch that HEAD named then; "" for none. `count`: commits from `start` to `tip`.
    `files`: by name; `patches_why` says why there are no patches. `rest`: paths of the sealed copy
    that differ from the tip's tree, the first ones of `rest_count`; `rest_tip` is a commit with
    them on top of the tip, or `rest_why` says why there is none. `ignored`: new files that git
    ignores."""

    error: CommitsError = ""
    detail: str = ""
    ref: str = ""
    start: str = ""
    tip: str = ""
    count: int = 0
    parts: int = 0
    runs_by_itself: int = 0
    left_out: tuple[LeftOut, ...] = ()
    files: dict[str, StoredFile] = field(default_factory=dict)
    patches_why: str = ""
    rest: tuple[LeftOut, ...] = ()
    rest_count: int = 0
    rest_tip: str = ""
    rest_why: str = ""
    ignored: int = 0

    @property
    def has_commits(self) -> bool:
        """Whether there are any, even if they cannot be taken."""
        return self.tip not in ("", self.start) and (self.count > 0 or self.error != "")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        lists = {
            name: tuple(LeftOut(**item) for item in data[name]) for name in ("left_out", "rest")
        }
        files = {name: StoredFile(**item) for name, item in data["files"].items()}
        return cls(**{**data, **lists, "files": files})
