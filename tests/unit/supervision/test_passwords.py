"""Passwords of features' programs."""

from pathlib import Path

import pytest

from agentbox.box.supervision.passwords import provide_password
from agentbox.box.supervision.secrets import store_secret
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.model import Password

SCREEN = Password(file="screen-password", secret="SCREEN")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A box whose two directories exist."""
    found = Paths(tmp_path)
    found.run.mkdir(parents=True)
    found.state.mkdir(parents=True)
    return found


def test_one_is_made_and_kept(paths: Paths) -> None:
    """Readable by the box alone, in both places; the next boot uses the same."""
    assert provide_password(paths, SCREEN) == "generated"
    laid, kept = paths.password("screen-password"), paths.state_secrets / "screen-password"
    value = laid.read_text()
    assert len(value) >= 32
    assert kept.read_text() == value
    assert (laid.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o400, 0o600)
    laid.unlink()
    assert provide_password(paths, SCREEN) == "file"
    assert laid.read_text() == value


def test_the_operators_own_goes_first(paths: Paths) -> None:
    """And leaves the stored one unchanged."""
    provide_password(paths, SCREEN)
    kept = (paths.state_secrets / "screen-password").read_text()
    store_secret(paths, "SCREEN", "correct horse")
    assert provide_password(paths, SCREEN) == "env"
    assert paths.password("screen-password").read_text() == "correct horse"
    assert (paths.state_secrets / "screen-password").read_text() == kept


@pytest.mark.parametrize("damaged", ["", "  \n", "change-me"])
def test_never_empty(paths: Paths, damaged: str) -> None:
    """Neither an empty secret nor an emptied file opens a program."""
    store_secret(paths, "SCREEN", damaged)
    paths.state_secrets.mkdir()
    (paths.state_secrets / "screen-password").write_text(damaged)
    assert provide_password(paths, SCREEN) == "generated"
    assert len(paths.password("screen-password").read_text()) >= 32


def test_a_kept_one_that_is_no_text(paths: Paths) -> None:
    """It is named, and not shown."""
    paths.state_secrets.mkdir()
    (paths.state_secrets / "screen-password").write_bytes(b"\xa7\xff")
    with pytest.raises(
        AgentboxError, match=r"^cannot read the password .*/screen-password: it is not valid UTF-8$"
    ):
        provide_password(paths, SCREEN)
