"""RC-025, run for real: the reference implementation of dev containers starts the rendered file,
and the container has the complete baseline of RC-015."""

import subprocess
from collections.abc import Callable

from harness.container import DockerBox
from npm_tools import npm_tool
from test_rc_015_hardening_from_outside import engine_says_baseline

from agentbox.plan.render.devcontainer import DEVCONTAINER_FILE, devcontainer


def test_the_dev_container_is_the_box(docker_box: Callable[..., DockerBox]) -> None:
    """It becomes ready, an editor's process in it is uid 1000, and the engine describes it like a
    box that `up` created."""
    box = docker_box()
    box.render()
    (box.compose_folder / DEVCONTAINER_FILE).write_text(devcontainer(box.plan))
    _devcontainer(box, "up")
    box.wait_ready()
    assert _devcontainer(box, "exec", "/usr/bin/id", "-u") == "1000"
    engine_says_baseline(box)


def _devcontainer(box: DockerBox, verb: str, *argv: str) -> str:
    words = [*npm_tool("devcontainer"), verb, "--workspace-folder", str(box.compose_folder), *argv]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
