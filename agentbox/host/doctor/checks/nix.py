"""Nix, which builds the image. A box that is pulled, or runs as processes, needs none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.installing import installation
from agentbox.host.doctor.row import Row
from agentbox.host.doctor.versions import at_least, number
from agentbox.host.engines.command import run

NAME = "nix"
TITLE = "Nix, which builds the image"
OLDEST = (2, 8)
_STORE = Path("/nix/store")


def look(host: Host) -> Iterator[Row]:
    if not host.contained:
        return
    if shutil.which("nix") is None:
        yield Row(
            check=NAME, state="warning", said="nix is not installed: no image can be built here",
            advice="Install nix-bin (`up` offers it), or pull an image: up --registry NAME@sha256:….",
            repair=installation(["nix-bin"], host.state.folder / "apt.log"),
        )  # fmt: skip
        return
    said = run(["nix", "--version"], doing="ask nix for its version").strip()
    if not at_least(said, OLDEST):
        yield Row(check=NAME, state="bad", said=said, advice=f"Bring Nix to {number(OLDEST)} or later.")
    elif (
        os.geteuid() != 0 and not os.access(_STORE, os.W_OK) and not Path("/nix/var/nix/daemon-socket/socket").exists()
    ):
        yield Row(check=NAME, state="bad", said=f"{said}, and neither a daemon nor a store that this user may write",
                  advice="Start nix-daemon, or run agentbox with sudo.")  # fmt: skip
    else:
        yield Row(check=NAME, state="good", said=said)
