"""From an agent's change to the operator's decision, over a real API and agent-host."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import agentbox
from helpers import read_all, sh, text, until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient


@pytest.fixture(autouse=True)
def _clean(box: ApiBox, client: BoxClient) -> Iterator[None]:
    """Each test begins with an empty workspace and no review."""
    yield
    for one in client.reviews.list().items:
        client.reviews.discard(one.agent_id)
    subprocess.run(["rm", "-rf", *map(str, box.paths.workspace.iterdir())], check=True)
    assert [one for one in box.paths.branches.iterdir() if (one / "sealed").exists()] == []


def run(client: BoxClient, script: str, **more: Any) -> str:
    """The agent of a task that succeeded."""
    items, task = read_all(client, client.submit_task(sh(script, **more)).task_id)
    assert task.state == "succeeded", text(items, "stderr")
    assert task.agent_id is not None
    return task.agent_id


def refused(call: Callable[[], Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


def events(client: BoxClient, agent_id: str, *types: str) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        every = client.call("read_events", query={"limit": 1000, "types": "review.*"})["events"]
        return [one for one in every if one["subject"] == agent_id]

    until(lambda: [one["type"] for one in found()] == list(types))
    return [one["data"] for one in found()]


def test_a_change_is_reviewed_and_taken(box: ApiBox, client: BoxClient) -> None:
    """The workspace stays unchanged until the commit, which applies what was shown; the journal
    records who decided."""
    ws = box.paths.workspace
    (ws / "text").write_text("one\ntwo\nthree\n")
    agent = run(client, "sed -i s/two/2/ text; echo hi > new; pwd; echo $AGENTBOX_WORKSPACE")
    assert (ws / "text").read_text() == "one\ntwo\nthree\n"
    assert not (ws / "new").exists()
    (summary,) = client.reviews.list().items
    assert (summary.agent_id, summary.added, summary.modified) == (agent, 1, 1)
    shown = client.reviews.show(agent)
    assert [one.path for one in shown.changes] == ["new", "text"]
    assert shown.changes[1].diff == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert client.reviews.commit(agent, summary.digest).changed == 2
    assert ((ws / "text").read_text(), (ws / "new").read_text()) == ("one\n2\nthree\n", "hi\n")
    assert client.reviews.list().items == ()
    sealed, committed = events(client, agent, "review.sealed", "review.committed")
    assert (sealed["modified"], sealed["digest"]) == (1, summary.digest)
    assert (committed["by"], committed["digest"]) == ("urn:agentbox:operator", summary.digest)
    assert refused(lambda: client.reviews.show(agent)).status == 404


def test_no_change_leaves_nothing(box: ApiBox, client: BoxClient) -> None:
    """No review, no branch, no directory."""
    (box.paths.workspace / "file").write_text("x")
    agent = run(client, "cat file > /dev/null; echo x > $TMPDIR/y")
    assert client.reviews.list().items == ()
    until(lambda: not (box.paths.branches / agent).exists())
    assert not (box.paths.slot("orchestrator") / "reviews" / agent).exists()


def test_discarded(box: ApiBox, client: BoxClient) -> None:
    """The branch is removed, the workspace stays, and the journal records it."""
    agent = run(client, "echo x > file")
    client.reviews.discard(agent)
    assert not (box.paths.branches / agent).exists()
    assert list(box.paths.workspace.iterdir()) == []
    events(client, agent, "review.sealed", "review.discarded")


def test_conflict_and_another_digest(box: ApiBox, client: BoxClient) -> None:
    """409 names the paths and applies nothing; 412 names the digest; the review stays in both
    cases."""
    ws = box.paths.workspace
    (ws / "file").write_text("old")
    agent = run(client, "echo agent > file; echo y > other")
    digest = client.reviews.list().items[0].digest
    other = refused(lambda: client.reviews.commit(agent, "0" * 64))
    assert (other.status, other.problem["etag"]) == (412, digest)
    (ws / "file").write_text("mine")
    assert "conflict:" in client.reviews.show(agent).changes[0].notes[0]
    conflict = refused(lambda: client.reviews.commit(agent, digest))
    assert (conflict.status, conflict.code, list(conflict.problem["conflicts"])) == (
        409,
        "review-conflict",
        ["file"],
    )
    assert sorted(one.name for one in ws.iterdir()) == ["file"]
    assert (ws / "file").read_text() == "mine"
    (ws / "file").write_text("old")
    assert client.reviews.commit(agent, digest).changed == 2


def test_side_by_side(box: ApiBox, client: BoxClient) -> None:
    """Two agents never see each other's work, nor each other's directories."""
    first = client.submit_task(
        sh("echo 1 > mine; for n in $(seq 100); do ls; sleep 0.02; done | sort -u")
    ).task_id
    second = client.submit_task(
        sh("echo 2 > yours; for n in $(seq 100); do ls; sleep 0.02; done | sort -u")
    ).task_id
    seen = [text(read_all(client, one)[0]).split() for one in (first, second)]
    assert seen == [["mine"], ["yours"]]
    agent = run(client, "ls $AGENTBOX_WORKSPACE/../.. || echo closed")
    assert _said(client, agent) == "closed\n"


def test_git_inside(box: ApiBox, client: BoxClient) -> None:
    """status, diff and commit work in the branch, which cannot write the repository that it borrows from."""
    ws = box.paths.workspace
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "1"],
    ):
        subprocess.run(["git", *words], cwd=ws, check=True)
    script = f"""set -e
echo x > file; git add file; git commit -q -m mine; git log --format=%s; git status --porcelain; git fsck --no-dangling
! touch {ws}/.git/objects/x 2>/dev/null; ! ls {ws} 2>/dev/null; ! cat {ws}/.git/config 2>/dev/null
printf '#!/bin/sh\\ntouch /tmp/hooked' > .git/hooks-x; git config core.fsmonitor 'touch hooked'"""
    agent = run(client, script)
    assert [one.path for one in client.reviews.show(agent).changes] == ["file"]
    client.reviews.commit(agent, client.reviews.list().items[0].digest)
    told = subprocess.run(
        ["git", "log", "--format=%s"], cwd=ws, capture_output=True, text=True, check=True
    )
    assert told.stdout == "1\n"
    assert "fsmonitor" not in (ws / ".git/config").read_text()


def test_hostile_names_and_content(box: ApiBox, client: BoxClient) -> None:
    """The command line prints no control byte, whatever an agent names a file or writes into it."""
    script = r"""printf 'a\033[2Jb\n\342\200\256txt' > "$(printf 'n\033]0;x\007\nme')"; printf '\000' > bin; ln -s ../../etc out"""
    agent = run(client, f"{script}; printf x > \"$(printf 'bad\\377')\"")
    done = agentbox(box, "review", "show", agent)
    assert done.returncode == 0, done.stderr
    assert [one for one in done.stdout if one < 32 and one != 10] == []
    said = done.stdout.decode("ascii")
    assert "n\\x1b]0;x\\x07\\nme" in said
    assert "+a\\x1b[2Jb" in said
    assert "\\u202etxt" in said
    assert "bad\\xff" in said
    assert "[binary]" in said
    assert "skipped: out: a link out of the workspace" in said
    assert agentbox(box, "review", "commit", agent).returncode == 0
    assert sorted(os.fsencode(one.name) for one in box.paths.workspace.iterdir()) == [
        b"bad\xff",
        b"bin",
        b"n\x1b]0;x\x07\nme",
    ]


def test_the_command_line(box: ApiBox, client: BoxClient) -> None:
    """`run` reports that there is a review; list, show, commit and discard do their work."""
    ran = agentbox(
        box,
        "run",
        "--",
        "/bin/sh",
        "-c",
        "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo y > a",
    )
    told = ran.stderr.decode().splitlines()[-1]
    assert told.startswith("agentbox: 2 files changed: agentbox review show ")
    agent = told.split()[-1]
    assert agentbox(box, "review", "list").stdout.decode().startswith(agent)
    shown = agentbox(box, "review", "show", agent).stdout.decode().splitlines()
    first = next(line for line in shown if "added" in line and "(" not in line)
    assert first == "! added    .github/workflows/ci.yml  [CI runs it]"
    (box.paths.workspace / "a").write_text("mine")
    conflict = agentbox(box, "review", "commit", agent)
    assert (conflict.returncode, conflict.stdout) == (
        1,
        b"a: it has changed since the agent started\n",
    )
    (box.paths.workspace / "a").unlink()
    wrong = agentbox(box, "review", "commit", "--digest", "0" * 64, agent)
    assert wrong.returncode == 1
    assert agentbox(box, "review", "commit", agent).stdout == b"2 files changed in the workspace\n"
    ran = agentbox(box, "run", "--", "/bin/sh", "-c", "rm a")
    agent = ran.stderr.decode().split()[-1]
    assert agentbox(box, "review", "discard", agent, given=b"n\n").returncode == 2
    assert agentbox(box, "review", "discard", "--yes", agent).returncode == 0
    assert (box.paths.workspace / "a").read_text() == "y\n"


def test_direct(box: ApiBox, client: BoxClient) -> None:
    """An admin may let an agent write the workspace itself; no other caller can, in any way."""
    assert agentbox(box, "run", "--direct", "--", "/bin/sh", "-c", "echo x > file").returncode == 0
    assert (box.paths.workspace / "file").read_text() == "x\n"
    assert client.reviews.list().items == ()
    made = client.tokens.create(
        "worker", ["agents:write", "agents:read", "beads:write", "reviews:write"]
    )
    with box.client(made.value) as worker:
        direct = sh("true", workspace="direct")
        for call in (lambda: worker.submit_task(direct), lambda: worker.call("spawn", body=direct)):
            error = refused(call)
            assert (error.status, error.problem["scope"]) == (403, "admin")


def test_scopes(box: ApiBox, client: BoxClient) -> None:
    """A token that may read reviews may not decide on them."""
    agent = run(client, "echo x > file")
    made = client.tokens.create("reader", ["agents:read", "agents:write"])
    with box.client(made.value) as reader:
        digest = reader.reviews.list().items[0].digest
        for call in (
            lambda: reader.reviews.commit(agent, digest),
            lambda: reader.reviews.discard(agent),
        ):
            error = refused(call)
            assert (error.status, error.problem["scope"]) == (403, "reviews:write")


@pytest.mark.parametrize("agent_id", ["nobody", "a/b", "...", "../streams", "x\ny"])
def test_no_such_review(client: BoxClient, agent_id: str) -> None:
    """404, whatever the form of the id."""
    assert refused(lambda: client.reviews.show(agent_id)).status == 404
    assert refused(lambda: client.reviews.discard(agent_id)).status == 404


def test_deaths(own_box: Callable[..., ApiBox]) -> None:
    """A change survives the death of agent-host while its agent runs, and its restart afterwards."""
    box = own_box()
    with box.client() as client:
        task_id = client.submit_task(sh("echo x > file; echo up; sleep 300")).task_id
        agent = until(lambda: client.get_task(task_id).agent_id)
        until(lambda: _said(client, agent) == "up\n")
        assert box.host is not None
        box.host.kill()
        box.host.start()
        read_all(client, task_id)
        until(lambda: [one.agent_id for one in client.reviews.list().items] == [agent])
        box.host.kill()
        box.host.start()
        until(lambda: _listed(client) == [agent])
        client.reviews.commit(agent, client.reviews.list().items[0].digest)
        assert Path(box.paths.workspace / "file").read_text() == "x\n"


def _listed(client: BoxClient) -> list[str]:
    """Empty while agent-host is not running."""
    try:
        return [one.agent_id for one in client.reviews.list().items]
    except ApiError as error:
        if not error.retryable:
            raise
        return []


def _said(client: BoxClient, agent: str) -> str:
    """What it printed so far."""
    return b"".join(
        one.data for one in client.agents.stream(agent, follow=False) if one.kind == "stdout"
    ).decode()
