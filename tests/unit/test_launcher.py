"""agentbox.sh: which code it runs, by which environment, and what it costs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.shared_environment import share_environment

from agentbox.core.paths import CHECKOUT

VERSION = "agentbox, version 0.1.0\n"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with an environment of its own and the sources of this one, its name outside of ASCII."""
    found = tmp_path_factory.mktemp("chëckout")
    for name in ("agentbox.sh", "requirements.host", "agentbox.toml", "agentbox.lock"):
        shutil.copy(CHECKOUT / name, found / name)
    for name in ("agentbox", "schema", "config"):  # with the compiled modules: they stay valid
        shutil.copytree(CHECKOUT / name, found / name)
    share_environment(found)
    return found


def run(
    script: Path | str, *words: str, cwd: Path | str = "/", **changes: str
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", **changes}
    return subprocess.run(
        [script, *words], capture_output=True, encoding="utf-8", errors="surrogateescape", cwd=cwd, env=environment, check=False
    )  # fmt: skip


def test_it_runs_through_a_link(checkout: Path, tmp_path: Path) -> None:
    """Absolute, relative, and one that leads to another."""
    (tmp_path / "one").symlink_to(checkout / "agentbox.sh")
    (tmp_path / "two").symlink_to("one")
    for name in ("one", "two"):
        done = run(tmp_path / name, "--version")
        assert (done.returncode, done.stdout) == (0, VERSION), done.stderr
    assert run("./two", "--version", cwd=tmp_path).stdout == VERSION


def test_it_is_found_by_a_shell_without_a_folder(checkout: Path) -> None:
    """`sh agentbox.sh` in the checkout."""
    assert run("sh", "agentbox.sh", "--version", cwd=checkout).stdout == VERSION


def test_it_runs_its_own_code_in_another_checkout(checkout: Path, tmp_path: Path) -> None:
    """Files in the working directory have no effect, whatever their names are."""
    for name in ("agentbox", "click", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong code')\n")
    done = run(checkout / "agentbox.sh", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, VERSION), done.stderr


def test_a_current_environment_costs_one_program(checkout: Path, tmp_path: Path) -> None:
    """`cmp`, and the interpreter itself: no other program is in the path."""
    (tmp_path / "cmp").symlink_to("/usr/bin/cmp")
    done = run(checkout / "agentbox.sh", "--version", PATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, VERSION), done.stderr


def test_a_manifest_is_judged_below_a_name_outside_of_ascii(checkout: Path) -> None:
    """Whatever the locale is."""
    for locale in ("C", "C.UTF-8", "POSIX"):
        done = run(checkout / "agentbox.sh", "config", "validate", LC_ALL=locale)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert f"{checkout}/agentbox.toml: valid" in done.stdout or done.stdout


def test_an_environment_that_lacks_a_package_says_so(checkout: Path) -> None:
    """Exit 3, one sentence and what to do; no traceback."""
    link = next((checkout / ".venv/lib").glob("python3.*/site-packages/lent-packages.pth"))
    held = link.read_text()
    link.write_text("")
    done = run(checkout / "agentbox.sh", "--version")
    link.write_text(held)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        f"agentbox: cannot run: the Python environment {os.fspath(checkout)}/.venv has no module click",
        "  Remove that folder and run the command again: it is made anew.",
    ]
