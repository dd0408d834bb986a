"""What the docker daemon of this host says about agentbox and others, or that it says nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from agentbox.host.engines.docker import daemon, daemon_status
from agentbox.host.engines.docker.ownership import Owner
from agentbox.host.engines.state import BoxState
from agentbox.host.uninstall import docker_objects
from agentbox.host.uninstall.docker_objects import DockerObjects
from agentbox.host.uninstall.inventory import Inventory

UNKNOWN: Final = "cannot tell who uses it: the docker daemon does not answer"


@dataclass(frozen=True)
class DockerAnswer:
    """`objects`: None without an answer, or if there is no docker. `unknown`: there is a docker
    that does not answer, so it may have something of anybody; `certain`: it was used for a box.
    """

    objects: DockerObjects | None = None
    unknown: bool = False
    certain: bool = True

    def users(self, *, purge: bool) -> tuple[str, ...]:
        """Who needs the docker of this host beside what is removed."""
        if self.unknown:
            return (UNKNOWN,)
        if self.objects is None:
            return ()
        kept = [] if purge else [f"volume {name}" for name in self.objects.volumes]
        return (*self.objects.others, *kept)


def ask_docker(
    inventory: Inventory, states: Sequence[BoxState], images: Collection[str], *, start: bool
) -> DockerAnswer:
    """Asks whenever docker may have something: a box of an earlier call may have left volumes. With
    `start`, a dockerd that agentbox started before is started again: only it can list and remove
    what it has. Raises AgentboxError if that docker certainly has something and does not respond.
    """
    kinds = {item.kind for item in inventory.items()}
    packaged = "docker.io" in inventory.names("package")
    if not (states or images or packaged or kinds & {"box", "daemon", "volume"}):
        return DockerAnswer()
    status = daemon_status.query_status()
    if status.state == "no-client" and not daemon.is_installed():
        return DockerAnswer()
    certain = bool(images) or "volume" in kinds or any(s.compose_dir.exists() for s in states)
    ours = "daemon" in kinds and status.is_startable and daemon.is_installed()
    if status.state != "answers" and start and ours and (certain or os.geteuid() == 0):
        daemon.start(inventory.directory)
        status = daemon_status.query_status()
    if status.state != "answers":
        if certain and start:
            raise daemon_status.unreachable_error("list what docker has of agentbox", status)
        return DockerAnswer(unknown=True, certain=certain)
    volumes = inventory.names("volume")
    owners = [Owner(state.directory.name, state.compose_dir, volumes) for state in states]
    return DockerAnswer(docker_objects.list_objects(owners, images))
