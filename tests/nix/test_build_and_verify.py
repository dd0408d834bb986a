"""The verbs `build` and `verify` as an operator meets them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbox.core.paths import CHECKOUT, environment


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory of its own; the cache is this machine's."""
    return tmp_path_factory.mktemp("state")


def agentbox(state: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "agentbox", *arguments],
        cwd=CHECKOUT, env={**environment(), "AGENTBOX_STATE_DIR": str(state)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def built(state: Path) -> dict[str, Any]:
    """The output of `build --json --out` for the image of this checkout."""
    found: dict[str, Any] = json.loads(
        agentbox(state, "--json", "build", "--out", str(state / "copy.tar")).stdout
    )
    return found


def test_build_says_what_it_made(state: Path, built: dict[str, Any]) -> None:
    """Reference, digests, size and new layers; the copy has the archive's bytes; progress is JSON lines on stderr."""
    assert built["new_layers"] == ["base", "python", "app", "config"]
    assert built["tag"].startswith("agentbox:")
    assert built["size"] == sum(layer["size"] for layer in built["layers"]) < 150_000_000
    assert (state / "copy.tar").read_bytes() == Path(built["path"]).read_bytes()
    again = agentbox(state, "--json", "build")
    second = json.loads(again.stdout)
    assert (second["image_id"], second["new_layers"], second["built"]) == (
        built["image_id"],
        [],
        [],
    )
    stages = [json.loads(line) for line in again.stderr.splitlines()]
    assert {"lock", "fetch", "build", "load"} <= {each["stage"] for each in stages}


def test_verify_finds_nothing_in_a_fresh_build(state: Path, built: dict[str, Any]) -> None:
    """Exit 0, one line per step; a step with nothing to compare is reported."""
    found = json.loads(agentbox(state, "--json", "verify", "--quick").stdout)
    assert found["same"] is True
    outcomes = {step["name"]: step["outcome"] for step in found["steps"]}
    assert outcomes == {
        "lock": "same", "render": "same", "skills": "same", "compose": "absent", "blobs": "same", "image": "same", "box": "absent",
    }  # fmt: skip


def test_verify_names_a_difference_and_runs_to_the_end(state: Path, built: dict[str, Any]) -> None:
    """Against another image: exit 1, the difference, and every later step all the same."""
    other = state / "other.toml"
    other.write_text(
        (CHECKOUT / "agentbox.toml").read_text().replace('name = "agentbox"', 'name = "another"')
    )
    agentbox(state, "--manifest", str(other), "build", "--out", str(state / "other.tar"))
    done = agentbox(state, "verify", "--quick", "--against", str(state / "other.tar"), code=1)
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "different layer config, etc/supervisord.conf: sha256" in lines["image"].replace(
        "  ", " "
    )
    assert list(lines) == ["lock", "render", "skills", "compose", "blobs", "image", "box"]


def test_verify_without_a_build_says_so(tmp_path: Path) -> None:
    """Exit 2 and what to run."""
    done = agentbox(tmp_path, "verify", code=2)
    assert "cannot verify the image: none was built yet" in done.stderr
    assert "agentbox build" in done.stderr


def test_an_unknown_system_is_refused(state: Path) -> None:
    """A system that the lock does not cover ends with exit 5 and is named."""
    assert "riscv64-linux" in agentbox(state, "build", "--system", "riscv64-linux", code=5).stderr
