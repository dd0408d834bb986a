"""The Python environment of a checkout."""

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import agentbox.host.bootstrap as bootstrap

SCRIPT = Path(bootstrap.__file__)
FAILURES = "agentbox/host/packages/python/pip_failures.py"
IMPORTED = (  # of the checkout
    "agentbox/core/certificates.py",
    "agentbox/core/errors.py",
    "agentbox/core/files/atomic_text.py",
    "agentbox/core/paths.py",
    "agentbox/host/network/adopt.py",
    "agentbox/host/network/diagnosis.py",
    "agentbox/host/packages/host_command.py",
    "agentbox/host/packages/python/pip_config.py",
    FAILURES,
)
ABSENT = "no-such-package-of-agentbox==1.0 --hash=sha256:" + "0" * 64 + "\n"
BARE = {"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "1"}


def make(
    checkout: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One call, as agentbox.sh makes it."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(checkout), "dumb"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose environment was created, once for all: that takes seconds."""
    made = tmp_path_factory.mktemp("check\u00f6ut")
    for name in IMPORTED:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        for package in Path(name).parents[:-1]:
            shutil.copy(SCRIPT.parents[2] / package / "__init__.py", made / package)
        shutil.copy(SCRIPT.parents[2] / name, made / name)
    (made / "requirements.host").write_text("# one\n")
    first = make(made, {**BARE, "LC_ALL": "C"})
    assert first.returncode == 0, first.stderr
    return made


def stamp_of(checkout: Path) -> str:
    return (checkout / ".venv/.required").read_text()


def imported_from(checkout: Path, environment: Path | None = None) -> str:
    """Where a program of the environment finds agentbox, wherever it is run."""
    asked = [
        (environment or checkout / ".venv") / "bin/python",
        "-Ic",
        "import agentbox; print(agentbox.__file__)",
    ]
    variables = {**BARE, "LC_ALL": "C"}
    return subprocess.run(
        asked, capture_output=True, encoding="utf-8", check=True, cwd="/", env=variables
    ).stdout


def test_an_environment_is_made_once_and_then_kept(checkout: Path, tmp_path: Path) -> None:
    """It gets a stamp and finds the checkout, whose sources are compiled; its requirements are
    updated in place."""
    assert stamp_of(checkout) == "# one\n"
    assert list((checkout / FAILURES).parent.glob("__pycache__/pip_failures.*.pyc"))
    kept = checkout / ".venv/kept"
    kept.touch()
    assert imported_from(checkout) == f"{checkout}/agentbox/__init__.py\n"
    link = tmp_path / "link"
    link.symlink_to(checkout / ".venv")  # as a box of the process engine has one
    assert imported_from(checkout, link) == f"{checkout}/agentbox/__init__.py\n"
    (checkout / "requirements.host").write_text("# two\n")
    assert make(checkout).returncode == 0
    assert stamp_of(checkout) == "# two\n"
    assert kept.exists()
    assert make(checkout).stderr == ""


@pytest.mark.sampled(3)  # each makes an environment, which takes seconds
@pytest.mark.parametrize("way", ["copied", "a release before", "linked"])
def test_an_environment_of_another_checkout_is_made_anew(
    checkout: Path, tmp_path: Path, way: str
) -> None:
    """Copied or moved with its checkout, or a link to it: its programs run the first one's files.
    The first one stays."""
    other = tmp_path / "other"
    shutil.copytree(
        checkout,
        other,
        symlinks=True,
        ignore=shutil.ignore_patterns(".venv") if way == "linked" else None,
    )
    if way == "linked":
        (other / ".venv").symlink_to(checkout / ".venv")
    if way == "a release before":
        (other / ".venv/.checkout").unlink()
        link = next((other / ".venv/lib").glob("python3.*/site-packages/agentbox-checkout.pth"))
        link.write_text(f"{checkout}\n")
    mark = checkout / ".venv/mark"
    mark.touch()
    done = make(other)
    assert (done.returncode, done.stderr.startswith("Python environment: 0 packages")) == (
        0,
        True,
    ), done.stderr
    assert imported_from(other) == f"{other}/agentbox/__init__.py\n"
    assert (other / ".venv/bin/pip").read_text().startswith(f"#!{other}/.venv/bin/python")
    assert not (other / ".venv/mark").exists()
    mark.unlink()
    assert imported_from(checkout) == f"{checkout}/agentbox/__init__.py\n"


@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        (
            {"PIP_NO_INDEX": "1"},
            "ERROR: No matching distribution found for no-such-package-of-agentbox==1.0",
        ),
        ({"PIP_INDEX_URL": "http://127.0.0.1:1/"}, "no network: pip cannot reach an index"),
    ],
    ids=["a package that cannot be had", "no network"],
)
def test_a_failure_is_one_sentence_and_leaves_no_stamp(
    checkout: Path, environment: dict[str, str], cause: str
) -> None:
    """Exit 3, a sentence with the cause, a hint, and the next call begins anew."""
    (checkout / "requirements.host").write_text(ABSENT)
    done = make(checkout, BARE | environment)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        f"agentbox: cannot make the Python environment: {cause}",
        f"  See {checkout}/.venv.log for the full output. Connect to the network, or free some space. Then run the command again.",
    ]
    assert not (checkout / ".venv/.required").exists()


@pytest.mark.parametrize(
    ("name", "why"), [(".venv.log", "No space left on device"), (".venv.lock", "Not a directory")]
)
def test_a_disk_that_refuses_is_one_sentence(checkout: Path, name: str, why: str) -> None:
    """A full disk, or one that cannot be written: exit 3, no traceback."""
    (checkout / "requirements.host").write_text(ABSENT)
    (checkout / name).unlink(missing_ok=True)
    (checkout / name).symlink_to("/dev/full" if name == ".venv.log" else "/dev/null/nowhere")
    done = make(checkout, BARE | {"PIP_NO_INDEX": "1"})
    (checkout / name).unlink()
    assert done.returncode == 3
    assert done.stderr.startswith(
        f"agentbox: cannot make the Python environment: {why}: {checkout}/"
    )
    assert len(done.stderr.splitlines()) == 2


def test_ctrl_c_ends_pip_too(checkout: Path) -> None:
    """Exit 130 and no traceback, with pip ended; the next call creates the environment."""
    (checkout / "requirements.host").write_text(ABSENT)
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(60)
        address = f"http://127.0.0.1:{index.getsockname()[1]}/"
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(checkout), "dumb"], stderr=subprocess.PIPE, text=True,
            env=BARE | {"PIP_INDEX_URL": address},
        )  # fmt: skip
        asked = index.accept()[0]  # pip waits for an answer
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[1] == ""
        assert process.returncode == 130
        asked.settimeout(30)
        while asked.recv(4096):  # until pip has exited
            continue
        asked.close()
    (checkout / "requirements.host").write_text("")
    assert make(checkout).returncode == 0
    assert stamp_of(checkout) == ""
