"""Installing what an engine needs from Debian, with the operator's consent and never without it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.engine.command import run, succeeds
from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import environment

_INSTALL = ("apt-get", "-y", "--no-install-recommends", "install")


@dataclass(frozen=True)
class Offer:
    """Packages that would be installed, with everything they pull in, and the download size as apt words it."""

    wanted: tuple[str, ...]
    all: tuple[str, ...]
    size: str


def offer(wanted: Sequence[str]) -> Offer:
    """Asks apt what installing would mean. Raises AgentboxError (exit 3) off Debian or without root."""
    command = " ".join(["apt-get", "install", *wanted])
    if shutil.which("apt-get") is None:
        raise AgentboxError(
            f"cannot install {', '.join(wanted)}: this is no Debian machine",
            "Install docker, compose and Nix with your own package manager, then run up again.",
            exit_code=ExitCode.PREREQUISITE,
        )
    if os.geteuid() != 0:
        raise AgentboxError(
            f"cannot install {', '.join(wanted)}: that needs root",
            f"Run: sudo {command}",
            exit_code=ExitCode.PREREQUISITE,
        )
    _simulate(wanted)  # refreshes the package lists where they are missing
    wanted = _with_client(wanted)
    said = _simulate(wanted)
    new = tuple(line.split()[1] for line in said.splitlines() if line.startswith("Inst "))
    return Offer(tuple(wanted), new, _size(wanted))


def refusal(wanted: Sequence[str]) -> AgentboxError:
    """What to raise when consent was refused or could not be asked for."""
    return AgentboxError(
        f"cannot start a box without {', '.join(wanted)}: not installed, and not allowed to install",
        f"Run: apt-get install {' '.join(wanted)}   (or give --yes)",
        exit_code=ExitCode.PREREQUISITE,
    )


def install(agreed: Offer, log: Path, advance: Callable[[str], None]) -> None:
    """Installs; apt's output goes to `log`, `advance` is called with each package that was set up.

    Services are kept from starting: the CLI starts the daemon itself. Raises AgentboxError (exit 3).
    """
    env = {**environment(), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*_INSTALL, *agreed.wanted], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=env,
        )  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            stream.write(line)
            if line.startswith("Setting up "):
                advance(line.split()[2])
    if process.wait() != 0:
        tail = "\n  ".join(log.read_text().splitlines()[-12:])
        raise AgentboxError(
            f"cannot install {', '.join(agreed.wanted)}: apt failed\n  {tail}",
            f"Whole output: {log}. Mend it (often `apt-get update`, `dpkg --configure -a`, disk space) and run up again.",
            exit_code=ExitCode.PREREQUISITE,
        )


def _with_client(wanted: Sequence[str]) -> Sequence[str]:
    """From Debian 13 on the client is a package of its own, which docker.io only recommends."""
    split = "docker.io" in wanted and succeeds(["apt-cache", "show", "docker-cli"])
    return [*wanted, "docker-cli"] if split and shutil.which("docker") is None else wanted


def _simulate(wanted: Sequence[str]) -> str:
    argv = ["apt-get", "-s", "-y", "--no-install-recommends", "install", *wanted]
    try:
        return run(argv, doing="ask apt", env={"LC_ALL": "C"}, exit_code=ExitCode.PREREQUISITE)
    except AgentboxError:
        run(["apt-get", "-qq", "update"], doing="refresh the package lists", exit_code=ExitCode.PREREQUISITE)
        return run(
            argv, doing=f"find {', '.join(wanted)} with apt", env={"LC_ALL": "C"}, exit_code=ExitCode.PREREQUISITE
        )


def _size(wanted: Sequence[str]) -> str:
    argv = ["apt-get", "--assume-no", "--no-install-recommends", "install", *wanted]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**environment(), "LC_ALL": "C"},
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("Need to get ")]
    return found[0].removeprefix("Need to get ").removesuffix(" of archives.") if found else "an unknown amount"
