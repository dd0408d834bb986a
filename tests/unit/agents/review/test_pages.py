"""Pages of a review: every change once, and no page longer than the message that carries it."""

from pathlib import Path
from typing import Any

from agentbox.agents.review.change import FileChange, FileState, Review, SkippedPath
from agentbox.agents.review.pages import page
from agentbox.core.records.wire import to_json
from agentbox.core.rpc.messages import LINE_LIMIT

LONG = "\x01" * 4_000  # shown as four characters each, and as five bytes of JSON


def pages(review: Review, sealed: Path, limit: int) -> list[dict[str, Any]]:
    """All of them."""
    found, at = [], 0
    while not found or found[-1]["next"]:
        found.append(page(review, sealed, at, limit))
        at = found[-1]["next"] or 0
    return found


def test_pages_of_the_longest_paths_fit_into_messages(tmp_path: Path) -> None:
    """Links with the longest possible names and targets, as many paths skipped."""
    changes = tuple(
        FileChange(
            path=f"{number:04}{LONG}",
            what="added",
            old=None,
            new=FileState(kind="link", mode=0o777, size=1, said=LONG),
        )
        for number in range(400)
    )
    left_out = tuple(
        SkippedPath(path=f"{number:04}{LONG}", why="a device") for number in range(400)
    )
    review = Review(
        agent_id="id",
        name="a",
        workspace=str(tmp_path),
        sealed_at=0,
        changes=changes,
        left_out=left_out,
        emptied=(),
    )
    found = pages(review, tmp_path, 400)
    assert max(len(to_json(one, ensure_ascii=True)) for one in found) < LINE_LIMIT // 4
    assert [row["index"] for one in found for row in one["changes"]] == list(range(400))
    assert 0 < len(found[0]["left_out"]) < 400
    assert found[0]["summary"]["left_out"] == 400
    assert not any(one["left_out"] for one in found[1:])


def test_diffs_beyond_a_page_are_cut_to_nothing(tmp_path: Path) -> None:
    """Those that no longer match are marked, and none of their text is shown."""
    sealed, workspace = tmp_path / "sealed", tmp_path / "workspace"
    sealed.mkdir(), workspace.mkdir()
    text = "x" * 60 + "\n"
    for number in range(30):
        (sealed / f"{number:02}").write_text(text * 2_000)
    new = FileState(kind="file", mode=0o644, size=len(text) * 2_000, said="0" * 64)
    changes = tuple(
        FileChange(path=f"{number:02}", what="added", old=None, new=new) for number in range(30)
    )
    review = Review(
        agent_id="id",
        name="a",
        workspace=str(workspace),
        sealed_at=0,
        changes=changes,
        left_out=(),
        emptied=(),
    )
    rows = page(review, sealed, 0, 30)["changes"]
    assert len(rows) == 30
    assert [row["diff"] for row in rows[-10:]] == ["\n[truncated]\n"] * 10
