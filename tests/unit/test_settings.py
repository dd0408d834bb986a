"""Where the command line stores its files."""

import os
import pwd
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import HostPaths

NOBODY = "no-such-user-here"


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment of root's, with nothing of ours in it."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in (
        "AGENTBOX_STATE_DIR",
        "AGENTBOX_CACHE_DIR",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "SUDO_USER",
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_caller_behind_sudo_owns_the_folders(root: pytest.MonkeyPatch) -> None:
    """Those of that user's home; the XDG variables are root's and are ignored."""
    user = pwd.getpwuid(1) if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    root.setenv("SUDO_USER", user.pw_name)
    root.setenv("XDG_STATE_HOME", "/elsewhere")
    found = HostPaths.for_this_user()
    assert found == HostPaths(
        Path(user.pw_dir) / ".local/state/agentbox", Path(user.pw_dir) / ".cache/agentbox"
    )


def test_an_unknown_caller_is_an_error_with_a_remedy(root: pytest.MonkeyPatch) -> None:
    """No traceback: the name, and what to set."""
    root.setenv("SUDO_USER", NOBODY)
    with pytest.raises(AgentboxError, match=NOBODY) as caught:
        HostPaths.for_this_user()
    assert caught.value.exit_code is ExitCode.USAGE
    assert "AGENTBOX_STATE_DIR" in caught.value.hint
    root.setenv("AGENTBOX_STATE_DIR", "/s")
    root.setenv("AGENTBOX_CACHE_DIR", "/c")
    assert HostPaths.for_this_user() == HostPaths(Path("/s"), Path("/c"))


def test_without_sudo_the_xdg_folders_count(root: pytest.MonkeyPatch) -> None:
    """Those that are set; else below HOME."""
    root.setenv("HOME", "/home/x")
    root.setenv("XDG_STATE_HOME", "/state")
    assert HostPaths.for_this_user() == HostPaths(
        Path("/state/agentbox"), Path("/home/x/.cache/agentbox")
    )
