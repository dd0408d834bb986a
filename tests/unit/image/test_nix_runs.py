"""The output of Nix becomes stages, and a failure becomes one sentence with the right exit code."""

import json
import subprocess
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.progress import NullProgress
from agentbox.host.image.flake_reference import flake_reference
from agentbox.host.image.nix import _failure
from agentbox.host.image.nix_log import BuildLog, store_name

STORE = "/nix/store/" + "0" * 32


class Recorded(NullProgress):
    """Remembers the stages."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def stage(self, name: str, total_bytes: int | None = None) -> None:
        self.seen.append(name)

    def done(self) -> None:
        self.seen.append("done")


def event(**fields: object) -> str:
    return "@nix " + json.dumps(fields)


def begin(activity: int, name: str) -> str:
    return event(
        action="start",
        id=activity,
        type=105,
        level=3,
        text="",
        fields=[f"{STORE}-{name}.drv", "", 1, 1],
    )


def end(activity: int) -> str:
    return event(action="stop", id=activity)


def test_one_stage_at_a_time() -> None:
    """Of two builds at once the older is shown; the other is shown when that ends."""
    progress = Recorded()
    watch = BuildLog(progress)
    for line in (
        begin(1, "tree-base"),
        begin(2, "tree-python"),
        end(1),
        end(2),
        event(action="stop", id=9),
    ):
        watch.feed(line)
    assert progress.seen == ["tree-base", "done", "tree-python", "done"]
    assert watch.built == ["tree-base", "tree-python"]


def failed(name: str, *log: str) -> BuildLog:
    watch = BuildLog(NullProgress())
    watch.feed(begin(1, name))
    for line in log:
        watch.feed(event(action="result", id=1, type=101, fields=[f"\x1b[31m{line}\x1b[0m"]))
    watch.feed(
        event(
            action="msg",
            level=0,
            msg=f"error: builder for '{STORE}-{name}.drv' failed with exit code 1",
        )
    )
    return watch


def test_a_failed_derivation_is_named_with_its_last_words() -> None:
    """Exit 6, the derivation's name, its log without colours."""
    error = _failure(
        failed("tree-base", *map(str, range(30)), "cannot put a into the tree"),
        "build the image",
        1,
    )
    assert error.exit_code == ExitCode.ENGINE
    sentence, *before = error.message.splitlines()
    assert sentence == "cannot build the image: tree-base failed: cannot put a into the tree"
    assert before == [f"  | {number}" for number in range(11, 30)]


def test_nix_that_was_killed_says_so() -> None:
    """It had no time to print anything: exit 6 and the signal."""
    error = _failure(BuildLog(NullProgress()), "build the image", -9)
    assert error.exit_code == ExitCode.ENGINE
    assert error.message == "cannot build the image: Nix failed: it was killed (SIGKILL)"


def test_an_absent_file_asks_for_fetch() -> None:
    """Exit 4 and the file's name."""
    watch = failed("git_1_amd64.deb", "git_1_amd64.deb is not in the store: run agentbox fetch")
    error = _failure(watch, "build the image", 1)
    assert error.exit_code == ExitCode.FETCH
    assert error.message == "cannot build the image: git_1_amd64.deb is not in the store"


def test_a_full_disk_is_said() -> None:
    """Whoever met it, Nix or a build step: one sentence, exit 6."""
    error = _failure(
        failed("layer-base", "OSError: [Errno 28] No space left on device"), "build the image", 1
    )
    assert (error.message, error.exit_code) == (
        "cannot build the image: the disk is full",
        ExitCode.ENGINE,
    )


def test_a_lock_that_does_not_fit_asks_for_lock() -> None:
    """Evaluation ends with a throw: exit 5."""
    watch = BuildLog(NullProgress())
    watch.feed("error: agentbox.lock has no packages for arm64: run agentbox lock")
    error = _failure(watch, "build the image", 1)
    assert error.exit_code == ExitCode.LOCK
    assert (
        error.message
        == "cannot build the image: agentbox.lock has no packages for arm64: run agentbox lock"
    )


def test_names_of_store_paths() -> None:
    """Hash and `.drv` are removed; what is not a store path stays."""
    assert store_name(f"{STORE}-tree-base.drv") == "tree-base"
    assert store_name("x") == "x"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small git checkout with one commit."""
    folder = tmp_path / "checkout"
    (folder / "agentbox").mkdir(parents=True)
    for name in ("agentbox.toml", "agentbox.lock", "agentbox/__init__.py"):
        (folder / name).write_text(name)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one")
    return folder


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout


def test_untracked_sources_stop_the_build(checkout: Path) -> None:
    """Exit 2, naming them; what git ignores is no source."""
    (checkout / ".gitignore").write_text("*.pyc\n")
    (checkout / "agentbox/new.py").write_text("")
    (checkout / "agentbox/old.pyc").write_text("")
    with (
        pytest.raises(AgentboxError, match=r"agentbox/new\.py, so Nix") as refused,
        flake_reference(checkout, checkout / "agentbox.toml", checkout / "agentbox.lock"),
    ):
        pytest.fail("the flake was given")
    assert refused.value.exit_code == ExitCode.USAGE
    assert "old.pyc" not in refused.value.message


def test_another_manifest_is_laid_over_a_copy(checkout: Path, tmp_path: Path) -> None:
    """The copy has the tracked files, that manifest, and the commit it was made from; it is removed
    afterwards."""
    other = tmp_path / "other.toml"
    other.write_text("mine")
    with flake_reference(checkout, other, checkout / "agentbox.lock") as flake:
        copy = Path(flake.removeprefix("path:"))
        assert (copy / "agentbox.toml").read_text() == "mine"
        assert (copy / "agentbox/__init__.py").exists()
        assert (copy / ".revision").read_text() == git(checkout, "rev-parse", "HEAD")
    assert not copy.exists()
    assert (checkout / "agentbox.toml").read_text() == "agentbox.toml"


def test_a_changed_checkout_states_no_commit(checkout: Path, tmp_path: Path) -> None:
    """The label would lie otherwise."""
    (checkout / "agentbox/__init__.py").write_text("changed")
    other = tmp_path / "other.toml"
    other.write_text("mine")
    with flake_reference(checkout, other, checkout / "agentbox.lock") as flake:
        assert not (Path(flake.removeprefix("path:")) / ".revision").exists()
