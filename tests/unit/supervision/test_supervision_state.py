"""Shutdown marks, the lock of the state volume, secrets."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.prefix_box import make_plan

from agentbox.box.supervision.current_boot import (
    CurrentBoot,
    lock_state,
    mark_clean,
    mark_running,
    read_current,
)
from agentbox.box.supervision.secrets import (
    find_token,
    is_placeholder,
    make_token,
    read_secret,
    store_secret,
)
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths

PLAN = make_plan(1, ())


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    made.mounted_secrets.mkdir(parents=True)
    made.run.mkdir(parents=True)
    made.state.mkdir(parents=True)
    return made


def test_a_fresh_volume_has_no_mark_and_a_running_boot_has_one(paths: Paths) -> None:
    """A fresh volume has no mark and a running boot has one."""
    assert read_current(paths) is None
    mark_running(paths, "one")
    assert read_current(paths) == CurrentBoot("one", "running")
    mark_clean(paths, "one")
    assert read_current(paths) == CurrentBoot("one", "clean")


def test_the_mark_of_another_boot_is_left_alone(paths: Paths) -> None:
    """The mark of another boot stays unchanged."""
    mark_running(paths, "two")
    mark_clean(paths, "one")
    assert read_current(paths) == CurrentBoot("two", "running")


def test_a_damaged_mark_counts_as_unclean(paths: Paths) -> None:
    """A damaged mark counts as unclean."""
    mark_running(paths, "one")
    paths.boot_current.write_text("{")
    current = read_current(paths)
    assert current is not None
    assert current.state == "running"


def test_one_volume_serves_one_box(paths: Paths) -> None:
    """One volume serves one box."""
    held = lock_state(paths)
    with pytest.raises(AgentboxError, match="another box") as refused:
        lock_state(paths)
    assert refused.value.exit_code == ExitCode.BUSY
    os.close(held)
    os.close(lock_state(paths))


def test_the_token_comes_from_the_first_source_that_has_one(paths: Paths) -> None:
    """Mounted secret, moved variable, the older name in the same order, the stored file."""
    assert find_token(paths, PLAN) is None
    made = make_token(paths)
    assert (made.source, len(made.value)) == ("generated", 64)
    assert paths.api_key.stat().st_mode & 0o777 == 0o600
    assert find_token(paths, PLAN) == replace(made, source="file")
    store_secret(paths, "MANAGEMENT_API_KEY", "older")
    assert find_token(paths, PLAN) == replace(made, value="older", source="env")
    (paths.mounted_secrets / "MANAGEMENT_API_KEY").write_text("older mounted")
    assert find_token(paths, PLAN) == replace(made, value="older mounted", source="secret")
    store_secret(paths, "BOX_TOKEN", "moved")
    assert find_token(paths, PLAN) == replace(made, value="moved", source="env")
    (paths.mounted_secrets / "BOX_TOKEN").write_text("mounted\n")
    assert find_token(paths, PLAN) == replace(made, value="mounted", source="secret")


@pytest.mark.parametrize(
    "text", ["", "  \n", "change-me", "CHANGE-THIS-NOW", "your-token-here", "todo", "<token>"]
)
def test_an_empty_secret_and_a_placeholder_count_as_unset(paths: Paths, text: str) -> None:
    """An empty secret and a placeholder count as unset."""
    (paths.mounted_secrets / "X").write_text(text)
    assert read_secret(paths, "X") is None


@pytest.mark.parametrize("text", ["s3cret", "mytodo", "not<this>", "change-mexico"])
def test_a_value_that_only_contains_such_words_is_no_placeholder(text: str) -> None:
    """A value that only contains such words is not a placeholder."""
    assert not is_placeholder(text)


def test_a_secret_that_cannot_be_read_is_an_error_that_names_it(paths: Paths) -> None:
    """A secret that cannot be read is an error that names it."""
    (paths.mounted_secrets / "X").mkdir()
    with pytest.raises(AgentboxError, match="cannot read secret X"):
        read_secret(paths, "X")


def test_what_is_no_text_is_an_error_that_shows_no_byte_of_it(paths: Paths) -> None:
    """Mounted, from the environment, or the stored key: named, with the remedy."""
    (paths.mounted_secrets / "X").write_bytes(b"\xa7\xff")
    store_secret(paths, "Y", "\udca7\udcff")
    paths.state_secrets.mkdir(parents=True, exist_ok=True)
    paths.api_key.write_bytes(b"\xa7\xff")
    for name, read in (
        ("secret X", lambda: read_secret(paths, "X")),
        ("secret Y", lambda: read_secret(paths, "Y")),
        ("the API key file", lambda: find_token(paths, PLAN)),
    ):
        with pytest.raises(AgentboxError) as caught:
            read()
        assert caught.value.message == f"cannot read {name}: it is not valid UTF-8"
        assert caught.value.hint
