"""An agent's commits, from its branch to a branch of the operator's repository, over a real API and
agent-host."""

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from commandline import agentbox
from helpers import read_all, sh, text
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient
from agentbox.core.errors import AgentboxError
from agentbox.host.commits.take import TakeOptions, take_commits

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


def test_what_was_not_committed(box: ApiBox, client: BoxClient) -> None:
    """It is said and lost to nobody: without --with-rest nothing is taken; with it, it is one more
    commit, by the agent's name. Ignored files are counted."""
    agent = run(
        client,
        "echo two > file; git commit -q -a -m change; echo three > file; ln -s file link\n"
        "echo new > 'odd \" name'; chmod +x 'odd \" name'; echo x > run.log; git rm -q .gitignore\n"
        "printf '*.log\\n' > .gitignore",
    )
    summary = client.reviews.commits(agent).summary
    assert {one.path: one.why for one in summary.rest} == {
        "file": "modified",
        "link": "untracked",
        'odd " name': "untracked",
    }
    assert summary.ignored == 1
    refusal = agentbox(box, "review", "commit", "--commits", agent)
    assert refusal.returncode == 1
    assert b"tip-differs: 3 paths not as in the last commit" in refusal.stderr
    assert b"not committed: link: untracked\n" in refusal.stdout
    for signed in (False, True):
        options = TakeOptions(branch="w", with_rest=False, signed=signed)
        with pytest.raises(AgentboxError, match="3 paths not as in the last commit"):
            take_commits(client, summary, box.paths.workspace, options)
    body = {"digest": summary.digest, "tip": summary.tip, "ref": "refs/heads/x"}
    error = refused(lambda: client.reviews.taken(agent, **body))
    assert (error.status, error.code, sorted(error.problem["paths"])) == (
        409,
        "tip-differs",
        ["file", "link", 'odd " name'],
    )
    assert git(box, "branch", "--list", "agentbox/*") == ""
    taken = agentbox(box, "review", "commit", "--commits", "--with-rest", "--branch", "w", agent)
    assert taken.stdout.startswith(b"2 commits in refs/heads/agentbox/w"), taken.stderr
    assert git(box, "log", "-1", "--format=%an %ae %s", "agentbox/w") == (
        f"test {agent}@agentbox.invalid Changes that the agent did not commit"
    )
    assert git(box, "ls-tree", "-r", "agentbox/w", "--format=%(objectmode) %(path)").split(
        "\n"
    ) == [
        "100644 .gitignore",
        "100644 file",
        "120000 link",
        '100755 "odd \\" name"',
    ]
    assert git(box, "show", "agentbox/w:file") == "three"


def test_signed_off(box: ApiBox, client: BoxClient) -> None:
    """The operator commits the agent's changes again: same author and files, other ids. The
    workspace is not touched, and no hook or filter of anybody runs."""
    agent = run(
        client, TWO + "\necho '* filter=evil' > .gitattributes; git add -A; git commit -qm 3"
    )
    ran = box.paths.prefix / "ran"
    for key in ("filter.evil.clean", "filter.evil.smudge"):
        git(box, "config", key, f"touch {ran}; cat")
    for name in ("applypatch-msg", "pre-applypatch", "post-commit", "reference-transaction"):
        hook = box.paths.workspace / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    tip = client.reviews.commits(agent).summary.tip
    done = agentbox(box, "review", "commit", "--commits", "--signoff", "--branch", "s", agent)
    assert done.returncode == 0, done.stderr
    said = git(box, "log", "--format=%an|%cn|%s|%(trailers:key=Signed-off-by)", "main..agentbox/s")
    signed = "Signed-off-by: Operator <operator@example.org>"
    assert (
        said.split("\n")
        == [
            f"Agent|Operator|{subject}|{signed}" if line == 0 else ""
            for subject in ("3", "second change", "first change")
            for line in (0, 1)
        ][:-1]
    )
    assert git(box, "rev-parse", "agentbox/s") != tip
    assert git(box, "ls-tree", "-r", "--name-only", "agentbox/s").split() == [
        ".gitattributes",
        ".gitignore",
        "file",
    ]
    assert (box.paths.workspace / "file").read_text() == "one\n"
    assert not ran.exists()


def test_names_that_are_refused(box: ApiBox, client: BoxClient) -> None:
    """An existing branch is never moved, and a name that git refuses is none; the review stays."""
    agent = run(client, TWO)
    git(box, "branch", "agentbox/old")
    for name, word in (
        ("old", b"branch-exists"),
        ("old/inner", b"ref-refused"),
        ("../../main", b"ref-refused"),
        ("x.lock", b"ref-refused"),
        ("\x1b[2J", b"ref-refused"),
    ):
        done = agentbox(box, "review", "commit", "--commits", "--branch", name, agent)
        assert (done.returncode, word in done.stderr) == (1, True), done.stderr
        assert b"\x1b" not in done.stderr
    wrong = agentbox(box, "review", "commit", "--commits", "--digest", "0" * 64, agent)
    assert b"its digest is" in wrong.stderr
    assert agentbox(box, "review", "commit", "--branch", "x", agent).returncode == 2
    assert git(box, "rev-parse", "agentbox/old") == git(box, "rev-parse", "main")
    assert git(box, "branch", "--list", "--format=%(refname)") == (
        "refs/heads/agentbox/old\nrefs/heads/main"
    )
    summary = client.reviews.commits(agent).summary
    body = {"digest": "0" * 64, "tip": summary.tip, "ref": "refs/heads/x"}
    assert refused(lambda: client.reviews.taken(agent, **body)).status == 412
    for name in ("tip", "ref"):
        invalid = {**body, "digest": summary.digest, name: "x" * 50}
        assert refused(lambda body=invalid: client.reviews.taken(agent, **body)).status == 400


def test_a_review_that_the_box_does_not_end(box: ApiBox, client: BoxClient) -> None:
    """The branch is removed again when the digest is another one; a bundle that is not that of the
    review is not used."""
    agent = run(client, TWO)
    summary = client.reviews.commits(agent).summary
    options = TakeOptions(branch="x")
    stale = replace(summary, digest="0" * 64)
    assert refused(lambda: take_commits(client, stale, box.paths.workspace, options)).status == 412
    other = replace(summary.files["bundle"], sha256="0" * 64)
    altered = replace(summary, files={**summary.files, "bundle": other})
    with pytest.raises(AgentboxError, match="it is not that of the review"):
        take_commits(client, altered, box.paths.workspace, options)
    assert git(box, "branch", "--list", "agentbox/*") == ""
    assert take_commits(client, summary, box.paths.workspace, options).commits == 2


def test_no_commits_to_take(box: ApiBox, client: BoxClient, tmp_path: Path) -> None:
    """An agent that committed nothing, and a workspace without a repository: each is said."""
    agent = run(client, "echo two > file")
    assert client.reviews.commits(agent).summary.count == 0
    done = agentbox(box, "review", "commit", "--commits", agent)
    assert b"it made none" in done.stderr
    done = agentbox(box, "review", "export", agent, str(tmp_path / "x"))
    assert (done.returncode, b"there are none" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []
    subprocess.run(["rm", "-rf", box.paths.workspace / ".git"], check=True)
    agent = run(
        client,
        "echo two > file; git init -q; git add -A; "
        "git -c user.name=a -c user.email=b commit -q -m x",
    )
    assert refused(lambda: client.reviews.commits(agent)).code == "no-repository"
    assert client.reviews.show(agent).summary.modified == 1


def test_hostile_text_on_the_command_line(box: ApiBox, client: BoxClient) -> None:
    """No control byte of an author, message, path, ref or content reaches a terminal."""
    agent = run(
        client,
        r"""printf 'a\033[2J\n' > "$(printf 'n\033]0;x\007')"; git add -A
git -c user.name="$(printf 'x\033[31mroot')" commit -q -m "$(printf 'm\033[2J\rx\342\200\256')"
cp .git/refs/heads/main ".git/refs/heads/$(printf '\033[2J')" """,
    )
    done = agentbox(box, "review", "show", "--commits", agent)
    assert done.returncode == 0, done.stderr
    assert [one for one in done.stdout if (one < 32 and one != 10) or one > 126] == []
    for shown in (
        rb"author x\x1b[31mroot",
        rb"m\x1b[2J\rx\u202e",
        rb"n\x1b]0;x\x07",
        rb"refs/heads/\x1b[2J",
    ):
        assert shown in done.stdout


def test_a_box_whose_workspace_is_elsewhere(box: ApiBox, client: BoxClient) -> None:
    """The command names the way there is, and takes nothing."""
    agent = run(client, TWO)
    done = agentbox(box, "review", "commit", "--commits", agent, workspace=None)
    assert done.returncode == 1
    assert f"agentbox review export {agent} FILE".encode() in done.stderr
    assert client.reviews.show(agent).summary.digest


TWO = f"""git config user.name Agent; git config user.email agent@example.org; echo two > file; mkdir -p .github/workflows; echo run > {WORKFLOW}
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
    done = agentbox(box, "review", "commit", agent)
    assert (done.stdout, b"2 commits of the agent ended with its branch" in done.stderr) == (
        b"1 file changed in the workspace\n",
        True,
    )
    assert (box.paths.workspace / "file").read_text() == "two\n"
