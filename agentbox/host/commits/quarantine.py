"""A repository of its own in which the commits of a bundle are checked before the operator's one
gets them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import temporary_prefix
from agentbox.host.commits.bundle import MAX_BUNDLE, read_header
from agentbox.host.commits.host_git import GitRefused, HostGit

INCOMING: Final = "refs/heads/incoming"
HEADS: Final = "refs/heads/agentbox/"
_ATTRIBUTES: Final = "* !text !eol !diff !filter !ident !merge !working-tree-encoding\n"


class Quarantine:
    """`git` is for the quarantine in `directory`, which borrows the objects of the operator's
    repository."""

    def __init__(self, directory: Path, repository: HostGit) -> None:
        self.directory, self._repository = directory, repository
        self.git_dir = directory / "quarantine.git"
        self.git = HostGit(f"--git-dir={self.git_dir}")

    def receive(self, bundle: Path, *, tip: str, start: str) -> None:
        """Check every object of the bundle as `git fsck --strict` does, and that it has exactly the
        commits from `start` to `tip`. Raises AgentboxError."""
        with bundle.open("rb") as stream:
            try:
                header = read_header(stream)
            except ValueError as error:
                raise _bad(str(error)) from error
            if header.tip != tip:
                raise _bad(f"its commit is {header.tip}, not {tip}")
            self._create(header.object_format)
            with tempfile.TemporaryFile(dir=self.directory) as pack:
                shutil.copyfileobj(stream, pack)
                pack.seek(0)
                try:
                    self._index(pack, tip, start)
                except GitRefused as error:
                    raise _bad(str(error)) from error

    def deliver(self, ref: str, tip: str) -> None:
        """Create that ref of the operator's repository with that commit, and nothing else of it.
        Raises AgentboxError."""
        zero = "0" * len(tip)
        try:
            self.git.run("update-ref", INCOMING, tip)
            self._repository.run(
                *(
                    "fetch",
                    "--quiet",
                    "--no-tags",
                    "--no-write-fetch-head",
                    "--no-auto-maintenance",
                ),
                *("--no-recurse-submodules", "--no-prune", str(self.git_dir), INCOMING),
            )
            self._repository.run(
                *("update-ref", "--no-deref", "-m", "agentbox: commits of an agent"),
                *(ref, tip, zero),
            )
        except GitRefused as error:
            exists = self._repository.succeeds("rev-parse", "--verify", "--quiet", ref)
            code = "branch-exists" if exists else "ref-refused"
            raise AgentboxError(
                f"cannot create {ref}: {code}: {error}", "Choose another name with --branch."
            ) from error

    def _create(self, object_format: str) -> None:
        common = Path(
            self._repository.run("rev-parse", "--path-format=absolute", "--git-common-dir")
        )
        plain = HostGit()
        plain.run(
            *("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}"),
            str(self.git_dir),
        )
        info = self.git_dir / "objects/info"
        info.mkdir(exist_ok=True)
        (info / "alternates").write_text(f"{common / 'objects'}\n")
        (self.git_dir / "info").mkdir(exist_ok=True)
        (self.git_dir / "info/attributes").write_text(_ATTRIBUTES)
        if (common / "shallow").exists():
            shutil.copyfile(common / "shallow", self.git_dir / "shallow")

    def _index(self, pack: IO[bytes], tip: str, start: str) -> None:
        self.git.run(
            *("index-pack", "--strict", "--fix-thin", "--stdin"),
            f"--max-input-size={MAX_BUNDLE}",
            stdin=pack,
        )
        self.git.run("rev-list", "--objects", "--quiet", tip, *([f"^{start}"] if start else []))
        self.git.run("update-ref", INCOMING, tip)


@contextmanager
def open_quarantine(repository: HostGit) -> Iterator[Quarantine]:
    """Removed at the end. Raises AgentboxError."""
    with tempfile.TemporaryDirectory(prefix=temporary_prefix("commits")) as directory:
        yield Quarantine(Path(directory), repository)


def check_ref(repository: HostGit, name: str) -> str:
    """The complete ref of a branch name. Raises AgentboxError if it cannot be created."""
    from agentbox.agents.review.commits.refs import is_safe_name

    ref = f"{HEADS}{name}"
    if not is_safe_name(ref) or not repository.succeeds("check-ref-format", ref):
        raise AgentboxError(
            f"cannot create {ref}: ref-refused: git does not accept this name",
            "Choose another name with --branch.",
        )
    if repository.succeeds("rev-parse", "--verify", "--quiet", ref):
        raise AgentboxError(
            f"cannot create {ref}: branch-exists", "Choose another name with --branch."
        )
    return ref


def _bad(words: str) -> AgentboxError:
    return AgentboxError(
        f"cannot take the commits: objects-bad: {words}",
        "Nothing was taken. Take the files without commits, or discard the review.",
    )
