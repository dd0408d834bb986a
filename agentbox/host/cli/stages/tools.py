"""What the suites with real builds and real containers need on this machine."""

from __future__ import annotations

import shutil

from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages.prerequisites import start_daemon
from agentbox.host.engines import packages
from agentbox.host.engines.choose import Choice, missing_packages
from agentbox.host.engines.docker.docker import Docker

# program -> Debian package; each is a peer that a suite runs for real.
_TOOLS = {
    "npm": "npm",
    "promtool": "prometheus",
    "curl": "curl",
    "openssl": "openssl",
    "git": "git",
    "make": "make",
    "chromium-headless-shell": "chromium-headless-shell",
}
_OF_CONTAINERS = {
    "skopeo": "skopeo",
    "podman": "podman",
    "catatonit": "catatonit",  # podman's pods need it; Debian's podman only recommends it
    "setfacl": "acl",
    "apt-ftparchive": "apt-utils",
}


def install_test_tools(cli: Cli, *, containers: bool, yes: bool) -> None:
    """Installs them with consent; with `containers`, those of their suites too, and starts the engine. Raises
    AgentboxError (exit 3)."""
    tools = {**_TOOLS, **(_OF_CONTAINERS if containers else {})}
    wanted = missing_packages(Docker(), build=True) if containers else []
    wanted += [package for program, package in tools.items() if shutil.which(program) is None]
    folder = HostPaths.of_this_user().state_root
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with cli.out.stage("tools") as stage:
        stage.said = "unchanged"
        if wanted:
            agreed = packages.offer(wanted)
            if not yes:
                raise packages.refusal(wanted)
            progress = cli.out.progress()
            progress.stage("install", packages.STEPS * len(agreed.all))
            packages.install(agreed, folder / "apt.log", lambda: progress.advance(1))
            progress.done()
            stage.said = f"installed {', '.join(wanted)}"
    if containers:
        with cli.out.stage("daemon") as stage:
            stage.said = start_daemon(Choice(Docker(), "tests"))
