"""An agent's commits, from its branch to a branch of the operator's repository, over a real API and
agent-host."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import agentbox
from helpers import read_all, sh, text
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient

WORKFLOW = ".github/workflows/ci.yml"


@pytest.fixture(autouse=True)
def _clean(box: ApiBox, client: BoxClient) -> Iterator[None]:
    """Each test begins with a repository of one commit and without a review."""
    git(box, "init", "-q", "-b", "main")
    git(box, "config", "user.name", "Operator")
    git(box, "config", "user.email", "operator@example.org")
    (box.paths.workspace / "file").write_text("one\n")
    (box.paths.workspace / ".gitignore").write_text("*.log\n")
    git(box, "add", "-A")
    git(box, "commit", "-q", "-m", "start")
    yield
    for one in client.reviews.list().items:
        client.reviews.discard(one.agent_id)
    subprocess.run(["rm", "-rf", *map(str, box.paths.workspace.iterdir())], check=True)
    kept = [path.name for path in box.paths.branches.glob("*/*")]
    assert {"sealed", "commits"}.isdisjoint(kept)


def git(box: ApiBox, *words: str, at: Path | None = None) -> str:
    done = subprocess.run(
        ["git", *words], cwd=at or box.paths.workspace, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def run(client: BoxClient, script: str) -> str:
    """The agent of a task that succeeded."""
    items, task = read_all(client, client.submit_task(sh(f"set -e\n{script}")).task_id)
    assert task.state == "succeeded", text(items, "stderr")
    assert task.agent_id is not None
    return task.agent_id


def refused(call: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


TWO = f"""echo two > file; mkdir -p .github/workflows; echo run > {WORKFLOW}
git add -A; git commit -q -m 'first change'
git rm -q {WORKFLOW}; git commit -q -m 'second change'"""


def test_commits_become_a_branch(box: ApiBox, client: BoxClient) -> None:
    """Shown one by one with what runs by itself although it is gone at the end; taken with their
    ids, to one new ref; the files of the workspace and every other ref stay; the review is over."""
    before = git(box, "show-ref")
    agent = run(client, TWO)
    page = client.reviews.commits(agent)
    assert [one.message for one in page.commits] == ["first change\n", "second change\n"]
    assert [file.path for file in page.commits[0].files] == [WORKFLOW, "file"]
    assert page.commits[0].files[1].diff == "@@ -1,1 +1,1 @@\n-one\n+two\n"
    assert {file.runs for one in page.commits for file in one.files if file.path == WORKFLOW} == {
        "CI runs it"
    }
    shown = agentbox(box, "review", "show", "--commits", agent)
    assert f"! added    {WORKFLOW}  [CI runs it]".encode() in shown.stdout
    assert b"2 commits since" in shown.stdout
    taken = agentbox(box, "review", "commit", "--commits", "--branch", "work", agent)
    assert taken.returncode == 0, taken.stderr
    assert git(box, "rev-parse", "agentbox/work") == page.summary.tip
    assert git(box, "show-ref").splitlines() == sorted(
        [*before.splitlines(), f"{page.summary.tip} refs/heads/agentbox/work"],
        key=lambda line: line.split()[1],
    )
    assert git(box, "status", "--porcelain", "--branch") == "## main"
    assert (box.paths.workspace / "file").read_text() == "one\n"
    assert git(box, "fsck", "--strict", "--no-dangling") == ""
    assert refused(lambda: client.reviews.show(agent)).status == 404
    assert refused(lambda: client.reviews.commits(agent)).status == 404


def test_exports(box: ApiBox, client: BoxClient, tmp_path: Path) -> None:
    """Both files apply to a clone; the digest of the review covers them, and taking the files ends
    the review as ever."""
    agent = run(client, TWO)
    summary = client.reviews.commits(agent).summary
    for kind in ("bundle", "mbox"):
        done = agentbox(box, "review", "export", "--format", kind, agent, str(tmp_path / kind))
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "bundle").read_bytes() == client.reviews.bundle(agent)
    assert (tmp_path / "mbox").read_bytes() == client.reviews.patches(agent)
    clone = tmp_path / "clone"
    git(box, "clone", "-q", str(box.paths.workspace), str(clone))
    git(box, "bundle", "verify", "-q", str(tmp_path / "bundle"), at=clone)
    git(box, "fetch", "-q", str(tmp_path / "bundle"), f"agentbox/{agent}", at=clone)
    assert git(box, "rev-parse", "FETCH_HEAD", at=clone) == summary.tip
    user = ("-c", "user.name=x", "-c", "user.email=y")
    git(box, *user, "am", "-q", str(tmp_path / "mbox"), at=clone)
    trees = {git(box, "rev-parse", f"{one}^{{tree}}", at=clone) for one in ("HEAD", "FETCH_HEAD")}
    assert len(trees) == 1
    (stored,) = box.paths.slot("orchestrator").glob(f"reviews/{agent}/review.json")
    review = json.loads(stored.read_text())
    assert review["commits"]["files"]["bundle"]["sha256"] == summary.files["bundle"].sha256
    assert client.reviews.commit(agent, summary.digest).changed == 1
    assert (box.paths.workspace / "file").read_text() == "two\n"
