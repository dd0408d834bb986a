"""What tests of reviews work at: a workspace, a branch of it, and what becomes of both."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from agentbox.agents.review import baseline, branch
from agentbox.agents.review.apply import ReviewApplier
from agentbox.agents.review.change import FileChange, Review
from agentbox.agents.review.compare import BranchComparison, compare

ODD = os.fsdecode(b"new\nline-\xff\x1b[2J")


class ReviewScenario:
    """A workspace, a branch of it, and what becomes of both."""

    def __init__(self, root: Path) -> None:
        self.root, self.workspace = root, root / "workspace"
        self.workspace.mkdir()
        self.journal = root / "commit.json"

    def begin(self) -> Path:
        self.work = branch.create(
            self.workspace, self.root / "branch", self.root / "start.jsonl", ("a", "b")
        ).work
        return self.work

    def comparison(self) -> BranchComparison:
        start = baseline.read(self.root / "start.jsonl")
        assert start is not None
        return compare(self.work, self.workspace, start.rows)

    def review(self) -> Review:
        found = self.comparison()
        return Review(
            agent_id="id", name="a", workspace="", sealed_at=0, changes=tuple(found.changes), left_out=tuple(found.skipped),
            emptied=tuple(found.emptied),
        )  # fmt: skip

    def apply(
        self, review: Review | None = None, on_step: Callable[[], None] = lambda: None
    ) -> int:
        applier = ReviewApplier(
            self.workspace, self.work, self.journal, review or self.review(), on_step
        )
        try:
            return applier.apply()
        finally:
            applier.close()

    def tree(self) -> dict[str, str]:
        """Everything in the workspace: bytes and mode, or where it leads."""
        found = {}
        for path in sorted(self.workspace.rglob("*")):
            told = path.lstat()
            what = (
                path.readlink()
                if path.is_symlink()
                else path.read_bytes().hex()
                if path.is_file()
                else ""
            )
            found[str(path.relative_to(self.workspace))] = f"{stat.filemode(told.st_mode)} {what}"
        return found


def filled(scenario: ReviewScenario) -> Path:
    """A branch with a change of every kind."""
    ws = scenario.workspace
    (ws / "same").write_text("same")
    (ws / "text").write_text("old")
    (ws / "gone").write_text("gone")
    (ws / "mode").write_text("mode")
    (ws / "link").symlink_to("text")
    (ws / "read-only").write_text("old")
    (ws / "read-only").chmod(0o444)
    (ws / "folder/inner").mkdir(parents=True)
    (ws / "folder/inner/file").write_text("deep")
    (ws / "becomes-a-folder").write_text("file")
    (ws / "becomes-a-file").mkdir()
    (ws / "becomes-a-file/inside").write_text("inside")
    work = scenario.begin()
    (work / "text").write_text("new")
    (work / "gone").unlink()
    (work / "mode").chmod(0o755)
    (work / "link").unlink()
    (work / "link").symlink_to("same")
    (work / "read-only").unlink()
    (work / "read-only").write_text("new")
    (work / "folder/inner/file").unlink()
    (work / "folder/inner").rmdir()
    (work / "folder").rmdir()
    (work / "becomes-a-folder").unlink()
    (work / "becomes-a-folder").mkdir()
    (work / "becomes-a-folder/x").write_text("x")
    (work / "becomes-a-file/inside").unlink()
    (work / "becomes-a-file").rmdir()
    (work / "becomes-a-file").write_text("file")
    (work / "made/deeper").mkdir(parents=True)
    (work / "made/deeper" / ODD).write_text("odd")
    return work


def by_path(changes: list[FileChange] | tuple[FileChange, ...]) -> dict[str, str]:
    return {one.path: one.what for one in changes}
