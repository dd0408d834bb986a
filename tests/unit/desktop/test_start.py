"""What the desktop's programs create at start, and what they refuse."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.box.programs.desktop import common, x11
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import PREFIX_VARIABLE


def test_the_process_engine_has_no_desktop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sockets of displays are where the host's own are, so the desktop reports that it needs a
    container."""
    monkeypatch.setenv(PREFIX_VARIABLE, str(tmp_path))
    with pytest.raises(AgentboxError, match="cannot start the desktop without a container"):
        common.box_paths()


def test_an_empty_password_is_refused(tmp_path: Path) -> None:
    """Only the first line counts, and it must not be empty."""
    (tmp_path / "some").write_text(" word\nmore\n")
    assert common.read_password(str(tmp_path / "some")) == "word"
    (tmp_path / "none").write_text("\nword\n")
    with pytest.raises(AgentboxError, match="the password is empty"):
        common.read_password(str(tmp_path / "none"))


def test_waiting_ends_with_the_socket_or_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A socket ends the wait at once; a plain file is none."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "X1"))
        common.wait_for_socket(tmp_path / "X1")
    (tmp_path / "X2").touch()
    monkeypatch.setattr(common, "_WAIT_SECONDS", 0.1)
    with pytest.raises(AgentboxError, match=r"X2 is missing after 0\.1 s"):
        common.wait_for_socket(tmp_path / "X2")


def test_a_helper_that_fails_is_quoted() -> None:
    """Its standard output is returned, or its last words."""
    assert common.run_helper(["/bin/cat"], "word") == b"word"
    with pytest.raises(AgentboxError, match="/bin/sh failed with 'no such thing'"):
        common.run_helper(["/bin/sh", "-c", "echo no such thing >&2; exit 3"])


def test_the_cookie_is_for_any_address_of_display_1() -> None:
    """An entry as Xau reads it: wild family, no address, display 1, the name of the protocol, sixteen bytes."""
    entry = x11._xauthority_entry(bytes(range(16)))
    assert entry == b"\xff\xff\0\0\0\x011\0\x12MIT-MAGIC-COOKIE-1\0\x10" + bytes(range(16))


def test_an_unknown_part_is_a_traceback_and_a_known_one_a_sentence(tmp_path: Path) -> None:
    """A user's mistake prints one line; a feature file that names no part is a bug."""
    argv = [sys.executable, "-m", "agentbox.box.programs.desktop"]
    refused = subprocess.run([*argv, "check", "1"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert refused.stderr.startswith("the server does not speak VNC")
    bug = subprocess.run([*argv, "nothing"], capture_output=True, text=True, check=False)
    assert "KeyError" in bug.stderr
