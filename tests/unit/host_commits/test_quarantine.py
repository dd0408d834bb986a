"""Bundles that a box would not make: nothing of them reaches the operator's repository."""

import os
import subprocess
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.commits.host_git import HostGit, repository_at
from agentbox.host.commits.quarantine import HEADS, check_ref, open_quarantine

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-02T03:04:05Z"))
}


def git(at: Path, *words: str, data: bytes = b"") -> str:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **IDENTITY}
    done = subprocess.run(
        ["git", *words], cwd=at, input=data, capture_output=True, check=True, env=env
    )
    return done.stdout.decode().strip()


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """A repository of one commit."""
    path = tmp_path / "operator"
    git(tmp_path, "init", "-q", "-b", "main", str(path))
    git(path, "commit", "-q", "--allow-empty", "-m", "start")
    return path


def made(operator: Path, entry: bytes = b"") -> tuple[Path, str]:
    """A bundle of one commit on top of the operator's, whose tree has that raw entry; its tip."""
    agent = operator.parent / "agent"
    git(operator.parent, "clone", "-q", str(operator), str(agent))
    blob = git(agent, "hash-object", "-w", "--stdin", data=b"x")
    tree = git(
        *(agent, "hash-object", "-w", "-t", "tree", "--literally", "--stdin"),
        data=(entry or b"100644 file") + b"\0" + bytes.fromhex(blob),
    )
    tip = git(agent, "commit-tree", tree, "-p", "HEAD", "-m", "x")
    git(agent, "update-ref", "refs/heads/agentbox/id", tip)
    bundle = operator.parent / "bundle"
    git(agent, "bundle", "create", "-q", str(bundle), "refs/heads/agentbox/id", "^origin/main")
    return bundle, tip


def take(operator: Path, bundle: Path, tip: str) -> None:
    """Both steps."""
    repository = repository_at(operator)
    start = git(operator, "rev-parse", "main")
    with open_quarantine(repository) as quarantine:
        quarantine.receive(bundle, tip=tip, start=start)
        quarantine.deliver(f"{HEADS}x", tip)


def test_an_honest_bundle(operator: Path) -> None:
    """One new ref; nothing else of the repository changes."""
    bundle, tip = made(operator)
    before = set((operator / ".git").iterdir())
    take(operator, bundle, tip)
    assert git(operator, "rev-parse", "agentbox/x") == tip
    assert set((operator / ".git").iterdir()) == before
    assert git(operator, "branch", "--list", "--format=%(refname:short)") == "agentbox/x\nmain"


@pytest.mark.parametrize(
    ("entry", "word"),
    [(b"100644 .git", "hasDotgit"), (b"120000 .gitmodules", "gitmodulesSymlink")],
)
def test_objects_that_fsck_refuses(operator: Path, entry: bytes, word: str) -> None:
    """CVE-2014-9390, CVE-2018-11235: `git fetch` of a bundle does not check them, the quarantine
    does."""
    bundle, tip = made(operator, entry)
    with pytest.raises(AgentboxError, match=f"objects-bad: .*{word}"):
        take(operator, bundle, tip)
    _nothing_arrived(operator, tip)


def test_altered_bundles(operator: Path) -> None:
    """No bundle, another commit, a second ref, an unknown capability, a pack that is cut off or has
    other bytes."""
    bundle, tip = made(operator)
    data = bundle.read_bytes()
    ref = f"{tip} refs/heads/agentbox/id\n".encode()
    for altered in (
        b"",
        b"# v9 git bundle\n" + data,
        data.replace(ref, ref.replace(tip.encode(), b"1" * 40)),
        data.replace(ref, ref + ref.replace(b"/id", b"/other")),
        data.replace(ref, b"@filter=blob:none\n" + ref),
        data.replace(ref, ref + b"\x1b[2J\n"),
        data[:-30],
        data[:-30] + bytes(30),
    ):
        bundle.write_bytes(altered)
        with pytest.raises(AgentboxError, match="objects-bad") as caught:
            take(operator, bundle, tip)
        assert caught.value.message.isprintable()
        _nothing_arrived(operator, tip)


def _nothing_arrived(operator: Path, tip: str) -> None:
    repository = HostGit("-C", str(operator))
    assert not repository.succeeds("cat-file", "-e", tip)
    assert git(operator, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_branch_that_appears_meanwhile(operator: Path) -> None:
    """It is not moved, although the commits would be a fast-forward of it."""
    bundle, tip = made(operator)
    repository = repository_at(operator)
    assert check_ref(repository, "x") == f"{HEADS}x"
    git(operator, "branch", "agentbox/x")
    with pytest.raises(AgentboxError, match="branch-exists"):
        take(operator, bundle, tip)
    assert git(operator, "rev-parse", "agentbox/x") == git(operator, "rev-parse", "main")


def test_a_directory_that_is_no_repository(operator: Path) -> None:
    """Nor one inside of a repository: the agent's copy had it at its root."""
    inner = operator / "inner"
    inner.mkdir()
    for directory in (operator.parent, inner):
        with pytest.raises(AgentboxError, match="no-repository"):
            repository_at(directory)


def test_without_git(operator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says so."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(AgentboxError, match="git is not installed on this machine"):
        repository_at(operator)
