"""Programs that the suites with real builds and containers need on this machine."""

from __future__ import annotations

import shutil

from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.prerequisites import start_daemon
from agentbox.host.engines import system_packages
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.engine_choice import EngineChoice, missing_packages

# program -> Debian package
_TOOLS = {
    "npm": "npm",
    "promtool": "prometheus",
    "curl": "curl",
    "openssl": "openssl",
    "git": "git",
    "make": "make",
    "jq": "jq",
    "age": "age",
    "zstd": "zstd",
    "restic": "restic",
    "/usr/sbin/sshd": "openssh-server",
    "zsh": "zsh",
    "fish": "fish",
    "chromium-headless-shell": "chromium-headless-shell",
}
_CONTAINER_TOOLS = {
    "skopeo": "skopeo",
    "podman": "podman",
    "catatonit": "catatonit",  # podman's pods need it; Debian's podman only recommends it
    "setfacl": "acl",
    "apt-ftparchive": "apt-utils",
}


def install_test_tools(cli: CliContext, *, containers: bool, yes: bool) -> None:
    """Installs missing tools after consent; with `containers` also theirs, and starts the engine.
    Raises AgentboxError (exit 3)."""
    tools = {**_TOOLS, **(_CONTAINER_TOOLS if containers else {})}
    missing = missing_packages(DockerEngine(), build=True) if containers else []
    missing += [package for program, package in tools.items() if shutil.which(program) is None]
    directory = HostPaths.for_this_user().state_root
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with cli.out.stage("tools") as stage:
        stage.result = "unchanged"
        if missing:
            install_plan = system_packages.plan_install(missing)
            if not yes:
                raise system_packages.consent_error(missing)
            progress = cli.out.progress()
            progress.stage(
                "install", system_packages.STEPS_PER_PACKAGE * len(install_plan.all_packages)
            )
            system_packages.install(
                install_plan, directory / "apt.log", lambda: progress.advance(1)
            )
            progress.done()
            stage.result = f"installed {', '.join(missing)}"
    if containers:
        with cli.out.stage("daemon") as stage:
            stage.result = start_daemon(EngineChoice(DockerEngine(), "tests"))
