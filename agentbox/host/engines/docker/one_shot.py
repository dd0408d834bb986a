"""One program on the volumes of a container box: a container without a network."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import IO

from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.core.paths import Paths
from agentbox.host.engines.command import failure_text
from agentbox.host.engines.docker.docker_cli import docker, explain_errors
from agentbox.host.engines.one_shot import HINT, OneShot, stdin_of
from agentbox.plan.names import BRANCHES, STATE

_BOX = Paths()
_BESIDE = "/beside"
_TARGETS = {STATE: str(_BOX.state), BRANCHES: str(_BOX.branches)}


def volume_exists(name: str) -> bool:
    """True if the daemon has a volume of exactly that name."""
    rows = docker(["volume", "ls", "--quiet"], doing=f"look for the volume {name}").split()
    return name in rows


def make_volume(box: str, plan_name: str, volume: str) -> None:
    """Makes a volume with the labels by which compose and `down --volumes` know it."""
    labels = {"com.docker.compose.project": box, "com.docker.compose.volume": plan_name}
    argv = [text for key, value in labels.items() for text in ("--label", f"{key}={value}")]
    docker(["volume", "create", *argv, volume], doing=f"make the volume {volume}")


def has_state(box: str, volumes: Mapping[str, str]) -> bool:
    """True if these volumes of the box exist."""
    return volume_exists(f"{box}-{volumes.get(STATE, STATE)}")


def discard(box: str, volumes: Mapping[str, str]) -> None:
    """Removes volumes that no container uses; those that do not exist are no error."""
    for name in volumes.values():
        if volume_exists(f"{box}-{name}"):
            docker(["volume", "rm", f"{box}-{name}"], doing=f"remove the volume {box}-{name}")


def run_once(shot: OneShot, doing: str, stdin: IO[bytes] | None = None) -> str:
    """Returns its stdout. Raises AgentboxError (exit 6) if it fails or takes too long."""
    mounts = []
    for plan_name, target in _TARGETS.items():
        volume = f"{shot.name}-{shot.volumes.get(plan_name, plan_name)}"
        if not volume_exists(volume):
            make_volume(shot.name, plan_name, volume)
        mounts += ["--mount", f"type=volume,source={volume},target={target}"]
    if shot.beside is not None:
        other = shot.name if shot.of is None else shot.of[0]
        volume = f"{other}-{shot.beside.get(STATE, STATE)}"
        mounts += ["--mount", f"type=volume,source={volume},target={_BESIDE},readonly"]
    remove_leftover(shot.container)
    argv = ["docker", "run", "--rm", "--pull", "never", "--interactive", "--name", shot.container]
    for key, value in (
        ("com.docker.compose.project", shot.name),  # `down` and `uninstall` find it by these
        ("com.docker.compose.project.working_dir", str(shot.state.compose_dir.resolve())),
        ("com.docker.compose.oneoff", "True"),
    ):
        argv += ["--label", f"{key}={value}"]
    argv += ["--network", "none"]
    argv += ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    argv += ["--user", "1000:1000", "--tmpfs", "/tmp", "--tmpfs", "/run:mode=1777", *mounts]
    argv += ["--entrypoint", str(_BOX.python), shot.image, "-I", "-m", shot.module]
    return explain_errors(lambda: _run([*argv, *shot.argv(_BESIDE)], shot, doing, stdin), doing)


def run_inside(container: str, module: str, stdin: str, seconds: float) -> str:
    """Runs a module in a container that runs. Raises AgentboxError (exit 6)."""
    doing = f"ask the box {container}"
    argv = ["docker", "exec", "--interactive", container, str(_BOX.python), "-I", "-m", module]
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise AgentboxError(
            f"cannot {doing}: no answer in {seconds:.0f} s", exit_code=ExitCode.ENGINE
        ) from error
    if done.returncode != 0:
        output = done.stderr.strip() or describe_exit(done.returncode)
        raise AgentboxError(f"cannot {doing}: {failure_text(output)}", exit_code=ExitCode.ENGINE)
    return done.stdout


def remove_leftover(container: str) -> None:
    """Removes the container of a program whose command was killed."""
    doing = f"remove the container {container}"
    listing = ["ps", "--all", "--quiet", "--filter", f"name=^{container}$"]
    if found := docker(listing, doing=doing).split():
        docker(["rm", "--force", *found], doing=doing)


def _run(argv: list[str], shot: OneShot, doing: str, stdin: IO[bytes] | None) -> str:
    try:
        with stdin_of(stdin) as stream:
            done = subprocess.run(
                argv,
                stdin=stream,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=shot.seconds,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        remove_leftover(shot.container)  # the client was killed, not the program
        raise AgentboxError(
            f"cannot {doing}: it did not end in {shot.seconds:.0f} s",
            HINT,
            exit_code=ExitCode.ENGINE,
        ) from error
    if done.returncode != 0:
        output = done.stderr.strip() or done.stdout.strip() or describe_exit(done.returncode)
        raise AgentboxError(
            f"cannot {doing}: {failure_text(output)}", HINT, exit_code=ExitCode.ENGINE
        )
    return done.stdout
