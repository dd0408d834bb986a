"""The Python environment of a checkout."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import agentbox.bootstrap_host as bootstrap

SCRIPT = Path(bootstrap.__file__)


def make(checkout: Path, stamp: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One call, as agentbox.sh makes it."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(checkout), stamp],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose environment was made, once for all: that takes seconds."""
    made = tmp_path_factory.mktemp("checkout")
    (made / "requirements.host").write_text("")
    first = make(made, "one")
    assert first.returncode == 0, first.stderr
    return made


def stamp_of(checkout: Path) -> str:
    return (checkout / ".venv/.requirements.sha256").read_text()


def test_an_environment_is_made_once_and_then_kept(checkout: Path) -> None:
    """It gets a stamp and finds the checkout; a second stamp brings the same environment up to date in place."""
    assert stamp_of(checkout) == "one"
    kept = checkout / ".venv/kept"
    kept.touch()
    path = subprocess.run(
        [checkout / ".venv/bin/python", "-c", "import sys; print(sys.path)"], capture_output=True, text=True, check=True
    )
    assert str(checkout) in path.stdout
    assert make(checkout, "two").returncode == 0
    assert stamp_of(checkout) == "two"
    assert kept.exists()


ABSENT = "no-such-package-of-agentbox==1.0 --hash=sha256:" + "0" * 64 + "\n"
BARE = {"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "1"}


@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        ({"PIP_NO_INDEX": "1"}, "ERROR: No matching distribution found for no-such-package-of-agentbox==1.0"),
        ({"PIP_INDEX_URL": "http://127.0.0.1:1/"}, "no network: pip reaches no index"),
    ],
    ids=["a package that cannot be had", "no network"],
)
def test_a_failure_is_one_sentence_and_leaves_no_stamp(checkout: Path, environment: dict[str, str], cause: str) -> None:
    """Exit 3, a sentence with the cause, a hint, and the next call begins anew."""
    (checkout / "requirements.host").write_text(ABSENT)
    done = make(checkout, "s", BARE | environment)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        f"agentbox: cannot make the Python environment: {cause}",
        f"  The whole output is {checkout}/.venv.log. Connect, or free some space. Then run the command again.",
    ]
    assert stamp_of(checkout) != "s"


@pytest.mark.parametrize(("name", "why"), [(".venv.log", "No space left on device"), (".venv.lock", "Not a directory")])
def test_a_disk_that_refuses_is_one_sentence(checkout: Path, name: str, why: str) -> None:
    """A full disk, or one that cannot be written: exit 3, no traceback."""
    (checkout / "requirements.host").write_text(ABSENT)
    (checkout / name).unlink(missing_ok=True)
    (checkout / name).symlink_to("/dev/full" if name == ".venv.log" else "/dev/null/nowhere")
    done = make(checkout, "s", BARE | {"PIP_NO_INDEX": "1"})
    (checkout / name).unlink()
    assert done.returncode == 3
    assert done.stderr.startswith(f"agentbox: cannot make the Python environment: {why}: {checkout}/")
    assert len(done.stderr.splitlines()) == 2


def test_ctrl_c_ends_pip_too(checkout: Path) -> None:
    """Exit 130 and no traceback, with pip ended; the next call makes the environment."""
    (checkout / "requirements.host").write_text(ABSENT)
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(60)
        address = f"http://127.0.0.1:{index.getsockname()[1]}/"
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(checkout), "s"], stderr=subprocess.PIPE, text=True,
            env=BARE | {"PIP_INDEX_URL": address},
        )  # fmt: skip
        asked = index.accept()[0]  # pip waits for an answer
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[1] == ""
        assert process.returncode == 130
        asked.settimeout(30)
        while asked.recv(4096):  # until pip is gone
            continue
        asked.close()
    (checkout / "requirements.host").write_text("")
    assert make(checkout, "s").returncode == 0
    assert stamp_of(checkout) == "s"
