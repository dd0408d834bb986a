"""Request and response bodies of commits in reviews."""

from collections.abc import Mapping
from typing import Annotated, Literal

from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record

CommitsFileName = Literal["bundle", "patches", "rest-bundle", "rest-patches"]


@record
class NotTaken(Record):
    path: str
    why: str


@record
class CommitsFile(Record):
    """A file made from the commits; `sha256` is covered by the digest of the review."""

    sha256: str
    size: int


@record
class CommitsSummary(Record):
    """Commits from `start`, that of HEAD when the agent started, to `tip`; `ref` is the branch that
    HEAD named at the end, "" for none. `directory`: of the repository, relative to the workspace of
    the box. `left_out`: what is never taken. `files`: `bundle`, `patches`, `rest-bundle` and
    `rest-patches`, as far as they exist; `patches_why` says why there are no patches. `rest`: paths
    that differ from the last commit, the first of `rest_count`, and how they do. `rest_tip` is a
    commit with them on top of it, or `rest_why` says why there is none. `ignored`: new files that
    git ignores, which no commit has.
    """

    agent_id: str
    name: str
    digest: str
    directory: str
    ref: str
    start: str
    tip: str
    count: int
    runs_by_itself: int
    left_out: tuple[NotTaken, ...]
    files: Mapping[str, CommitsFile]
    patches_why: str
    rest: tuple[NotTaken, ...]
    rest_count: int
    rest_tip: str
    rest_why: str
    ignored: int


@record
class CommittedFile(Record):
    """`diff`: hunks against the first parent, or a remark in brackets."""

    path: str
    what: Literal["added", "modified", "deleted"]
    runs: str
    notes: tuple[str, ...]
    diff: str


@record
class CommitPart(Record):
    """A commit, or with `part` above 0 more files of it; `more` says that another part follows. The
    message is in the first part. Dates: UTC, then the zone of the commit.
    """

    index: int
    part: int
    id: str
    parents: tuple[str, ...]
    author: str
    author_date: str
    committer: str
    committer_date: str
    message: str
    files: tuple[CommittedFile, ...]
    more: bool


@record
class CommitsPage(Record):
    """`next` is the number of the next part, None at the end. A page has fewer parts than requested
    if they are large.
    """

    summary: CommitsSummary
    commits: tuple[CommitPart, ...]
    next: int | None


@record
class CommitsChunk(Record):
    """Bytes of a file made from the commits, with the SHA-256 and size of all of it."""

    data: bytes
    sha256: str
    size: int


@record
class TakenBody(Record):
    """The commits are now at `tip`, which `ref` names. `with_rest`: with the changes that had no
    commit.
    """

    digest: Annotated[str, bounded_text(minimum=1)]
    tip: Annotated[str, bounded_text(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")]
    ref: Annotated[str, bounded_text(maximum=1_000, pattern="^refs/heads/.")]
    with_rest: bool = False


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        NotTaken,
        CommitsFile,
        CommitsSummary,
        CommittedFile,
        CommitPart,
        CommitsPage,
        TakenBody,
    )
}
