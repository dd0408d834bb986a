"""What the docker daemon has of agentbox, and of others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from agentbox.core.errors import AgentboxError
from agentbox.host.engines.command import succeeds
from agentbox.host.engines.docker.docker_cli import docker
from agentbox.host.engines.docker.ownership import Owner, Row, list_rows, split

_DOING: Final = "list what docker has"


@dataclass(frozen=True)
class DockerObjects:
    """Names of the objects of some boxes, by kind; `others` describes those of nobody of them, and
    `namesakes` are those of them that have the compose project of a box.
    """

    containers: tuple[str, ...]
    networks: tuple[str, ...]
    volumes: tuple[str, ...]
    images: tuple[str, ...]  # ids and references
    others: tuple[str, ...]
    namesakes: tuple[Row, ...]


def list_objects(owners: Collection[Owner], images: Collection[str]) -> DockerObjects:
    """Lists the daemon's objects. Raises AgentboxError (exit 6) if it does not respond."""
    ours, others = split(list_rows(_DOING), owners)
    boxes = {owner.box for owner in owners}
    present = tuple(image for image in sorted(images) if _has_image(image))
    ids = {_image_id(image) for image in present}
    all_ids = set(docker(["image", "ls", "--all", "--quiet", "--no-trunc"], doing=_DOING).split())
    other_images = [f"image {image_id[:19]}" for image_id in sorted(all_ids - ids)]
    used = [f"{row.kind} {row.name}" for row in others if row.kind != "network"]
    return DockerObjects(
        containers=tuple(row.name for row in ours if row.kind == "container"),
        networks=tuple(row.name for row in ours if row.kind == "network"),
        volumes=tuple(row.name for row in ours if row.kind == "volume"),
        images=present,
        others=(*used, *other_images),
        namesakes=tuple(row for row in others if row.project in boxes),
    )


def image_size(image: str) -> int:
    """The bytes of an image, layers that it shares included."""
    return int(docker(["image", "inspect", "--format", "{{.Size}}", image], doing=_DOING))


def remove_object(kind: str, name: str) -> None:
    """Removes a container, network, volume or image that may be gone. Raises AgentboxError."""
    force = ["--force"] if kind == "container" else []
    try:
        docker([kind, "rm", *force, name], doing=f"remove the {kind} {name}")
    except AgentboxError:
        if succeeds(["docker", kind, "inspect", name]):
            raise


def _has_image(image: str) -> bool:
    return succeeds(["docker", "image", "inspect", image])


def _image_id(image: str) -> str:
    return docker(["image", "inspect", "--format", "{{.Id}}", image], doing=_DOING).strip()
