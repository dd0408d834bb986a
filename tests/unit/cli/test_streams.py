"""Standard streams that are closed, full or a dumb terminal: a message, one exit code, no traceback."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT, HostPaths

RUN = (sys.executable, "-P", "-m", "agentbox")
UNWRITABLE = {">&-": "Bad file descriptor", ">/dev/full": "No space left on device"}


def shell(words: str, state: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell, where `agentbox` is the command."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/root",
        "AGENTBOX_STATE_DIR": str(state),
        **changes,
    }
    line = f'agentbox() {{ "{sys.executable}" -P -m agentbox "$@"; }}; {words}'
    return subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("where", UNWRITABLE)
@pytest.mark.parametrize("words", ["status", "config validate", "config show"])
def test_a_result_that_cannot_be_written_is_exit_3(tmp_path: Path, where: str, words: str) -> None:
    """The command line reports why on stderr, in two lines."""
    done = shell(f"agentbox {words} {where}", tmp_path)
    assert done.returncode == 3
    assert (
        done.stderr.splitlines()[0]
        == f"agentbox: cannot finish {words.split()[0]}: {UNWRITABLE[where]}"
    )
    assert len(done.stderr.splitlines()) == 2


def test_json_says_the_exit_code_that_it_leaves_with(tmp_path: Path) -> None:
    """Of a full disk too."""
    done = shell("agentbox --json status >/dev/full", tmp_path)
    assert (done.returncode, json.loads(done.stderr)["exit_code"]) == (3, 3)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("status <&- 2>&-", 8),
        ("status 2>/dev/full", 8),
        ("status >&- 2>&-", 3),
        ("nonsense 2>&-", 2),
        ("down --volumes <&-", 2),
    ],
)
def test_closed_streams_change_no_exit_code(tmp_path: Path, words: str, code: int) -> None:
    """Of stdin and stderr: nobody answers, and nothing is reported."""
    done = shell(f"agentbox {words}", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def test_the_folders_of_a_user_need_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their owner is known without the environment."""
    for name in ("HOME", "AGENTBOX_STATE_DIR", "XDG_STATE_HOME", "SUDO_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1)  # daemon, of every Debian
    assert HostPaths.for_this_user().state_root == Path("/usr/sbin/.local/state/agentbox")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_a_dumb_terminal_gets_no_escape(tmp_path: Path, term: str) -> None:
    """And another one the colours of findings."""
    wrong = tmp_path / "agentbox.toml"
    wrong.write_text("[meta]\nschema_version = 1\nzebra = 1\n")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as terminal:
        words = [*RUN, "config", "validate", str(wrong)]
        environment = {"PATH": "/usr/bin:/bin", "TERM": term}
        subprocess.run(
            words,
            stdout=terminal,
            stderr=terminal,
            stdin=terminal,
            cwd=CHECKOUT,
            env=environment,
            check=False,
        )
        said = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"E016" in said
    assert (b"\x1b[" in said) == (term == "xterm")


@pytest.mark.parametrize(
    "kept", [b"\xff\xfe\n", b"two words\n", "caf\u00e9\n".encode(), b"\x1b[2J\n", b""]
)
def test_a_damaged_token_is_read_anew(tmp_path: Path, kept: bytes) -> None:
    """It counts as none, and is never printed."""
    from agentbox.host.engines.state import BoxState

    state = BoxState(tmp_path)
    state.token_file.write_bytes(kept)
    assert state.stored_token() == ""
    state.save_token("good")
    assert state.stored_token() == "good"


def test_a_token_that_no_header_holds_is_not_printed() -> None:
    """A sentence and exit 2."""
    from agentbox.client import BoxClient
    from agentbox.core.errors import AgentboxError, ExitCode

    for token in ("s\u00e9cret", "sec ret", "sec\nret"):
        with pytest.raises(AgentboxError) as refused:
            BoxClient("http://127.0.0.1:9", token=token)
        assert refused.value.exit_code is ExitCode.USAGE
        assert "cret" not in f"{refused.value} {refused.value.hint}"
