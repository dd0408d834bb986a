"""Installs the Debian packages that an engine needs, only with the operator's consent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.core.paths import environment
from agentbox.host.engines.command import failure_text, run, succeeds
from agentbox.host.engines.interrupts import deferred_interrupts
from agentbox.host.uninstall.host_traces import note_packages
from agentbox.host.uninstall.inventory import Inventory

# Waits for another apt (unattended upgrades); without a pty dpkg writes no progress into the log.
_APT_OPTIONS = ("-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0")
_INSTALL = ("apt-get", "-y", *_APT_OPTIONS, "--no-install-recommends", "install")
_STEPS = ("Get:", "Unpacking ", "Setting up ")  # lines of apt for each package, in this order
STEPS_PER_PACKAGE = len(_STEPS)


@dataclass(frozen=True)
class InstallPlan:
    """Packages to install, including their dependencies, and the download size."""

    requested: tuple[str, ...]
    all_packages: tuple[str, ...]
    size: str
    new_packages: tuple[str, ...] = ()  # those that are not installed in an older version


def plan_install(packages: Sequence[str]) -> InstallPlan:
    """Asks apt what would be installed. Raises AgentboxError (exit 3) if this is not Debian or not
    root.
    """
    command = " ".join(["apt-get", "install", *packages])
    if shutil.which("apt-get") is None:
        raise AgentboxError(
            f"cannot install {', '.join(packages)}: not a Debian machine",
            "Install docker, compose and Nix with your own package manager, then run up again.",
            exit_code=ExitCode.PREREQUISITE,
        )
    if os.geteuid() != 0:
        raise AgentboxError(
            f"cannot install {', '.join(packages)}: root is required",
            f"Run: sudo {command}",
            exit_code=ExitCode.PREREQUISITE,
        )
    _simulate(packages)  # refreshes missing package lists
    packages = _add_client(packages)
    output = _simulate(packages)
    rows = [line.split() for line in output.splitlines() if line.startswith("Inst ")]
    return InstallPlan(
        tuple(packages),
        tuple(row[1] for row in rows),
        _size(packages),
        tuple(row[1] for row in rows if not row[2].startswith("[")),  # [the installed version]
    )


def consent_error(packages: Sequence[str]) -> AgentboxError:
    """Return the error for refused or impossible consent."""
    return AgentboxError(
        f"cannot start a box without {', '.join(packages)}: not installed, and installation was "
        "not allowed",
        f"Run: apt-get install {' '.join(packages)}   (or give --yes)",
        exit_code=ExitCode.PREREQUISITE,
    )


def install(plan: InstallPlan, log: Path, advance: Callable[[], None]) -> None:
    """Installs the packages; apt's output goes to `log`, `advance` is called STEPS_PER_PACKAGE
    times per package.

    An interrupted installation is completed first. Ctrl-C is passed to apt, which stops at a
    consistent state. Raises AgentboxError (exit 3).
    """
    note_packages(Inventory.for_this_user(), plan.new_packages)
    with wrap_os_errors(f"write {log}"), log.open("w") as stream:
        _run_apt(["dpkg", "--configure", "--pending"], stream, lambda _line: None)
        code = _run_apt(
            [*_INSTALL, *plan.requested],
            stream,
            lambda line: advance() if line.startswith(_STEPS) else None,
        )
    if code != 0:
        failure = failure_text(log.read_text(errors="replace"))
        raise AgentboxError(
            f"cannot install {', '.join(plan.requested)}: {failure}",
            f"Full output: {log}. Fix the error (often `apt-get update`, or disk space) and run "
            "up again.",
            exit_code=ExitCode.PREREQUISITE,
        )


def _run_apt(argv: Sequence[str], stream: IO[str], on_line: Callable[[str], None]) -> int:
    """Runs apt in its own session: the terminal's Ctrl-C must not reach dpkg, which would stop
    halfway.
    """
    env = {**environment(), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            stream.write(line)
            on_line(line)
    except BaseException:
        process.send_signal(signal.SIGINT)
        with deferred_interrupts():
            process.communicate()
        raise
    return process.wait()


def _add_client(packages: Sequence[str]) -> Sequence[str]:
    """Since Debian 13 the client is a separate package, which docker.io only recommends."""
    separate_client = "docker.io" in packages and succeeds(["apt-cache", "show", "docker-cli"])
    return (
        [*packages, "docker-cli"]
        if separate_client and shutil.which("docker") is None
        else packages
    )


def _simulate(packages: Sequence[str]) -> str:
    argv = ["apt-get", "-s", "-y", "--no-install-recommends", "install", *packages]
    try:
        return run(argv, doing="query apt", env={"LC_ALL": "C"}, exit_code=ExitCode.PREREQUISITE)
    except AgentboxError:
        run(
            ["apt-get", "-qq", "update"],
            doing="refresh the package lists",
            exit_code=ExitCode.PREREQUISITE,
        )
        return run(
            argv,
            doing=f"find {', '.join(packages)} with apt",
            env={"LC_ALL": "C"},
            exit_code=ExitCode.PREREQUISITE,
        )


def _size(packages: Sequence[str]) -> str:
    """Return the download size. `--print-uris` never installs anything; `--assume-no` would if apt
    asked nothing.
    """
    argv = ["apt-get", "-y", "--print-uris", "--no-install-recommends", "install", *packages]
    output = run(
        argv, doing="query apt for sizes", env={"LC_ALL": "C"}, exit_code=ExitCode.PREREQUISITE
    )
    rows = [line.split() for line in output.splitlines() if line.startswith("'")]
    return f"{sum(int(row[2]) for row in rows) / 1e6:.1f} MB"
