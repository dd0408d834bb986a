"""Nix, which builds the image; not needed for pulled images and process boxes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.install_fix import install_fix
from agentbox.host.doctor.version_numbers import format_version, meets_minimum
from agentbox.host.engines.command import run

NAME = "nix"
TITLE = "Nix, which builds the image"
MIN_VERSION = (2, 8)
_STORE = Path("/nix/store")


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    if not host.is_container:
        return
    if shutil.which("nix") is None:
        yield CheckResult(
            check=NAME,
            state="warning",
            message="nix is not installed: cannot build an image",
            advice=(
                "Install nix-bin (`up` offers it), or pull an image: up --registry NAME@sha256:…."
            ),
            fix=install_fix(["nix-bin"], host.state.directory / "apt.log"),
        )
        return
    version = run(["nix", "--version"], doing="query nix's version").strip()
    if not meets_minimum(version, MIN_VERSION):
        yield CheckResult(
            check=NAME,
            state="bad",
            message=version,
            advice=f"Upgrade Nix to {format_version(MIN_VERSION)} or later.",
        )
    elif (
        os.geteuid() != 0
        and not os.access(_STORE, os.W_OK)
        and not Path("/nix/var/nix/daemon-socket/socket").exists()
    ):
        yield CheckResult(
            check=NAME,
            state="bad",
            message=f"{version}, but there is neither a daemon nor a store writable by this user",
            advice="Start nix-daemon, or run agentbox with sudo.",
        )
    else:
        yield CheckResult(check=NAME, state="good", message=version)
