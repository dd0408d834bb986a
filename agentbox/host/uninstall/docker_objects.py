"""What the docker daemon has of agentbox, and of others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from agentbox.core.errors import AgentboxError
from agentbox.host.engines.command import succeeds
from agentbox.host.engines.docker.docker import PROJECT_LABEL
from agentbox.host.engines.docker.docker_cli import docker

_DOING: Final = "list what docker has"
_PROJECT: Final = f'{{{{.Label "{PROJECT_LABEL}"}}}}'


@dataclass(frozen=True)
class DockerObjects:
    """Names of the objects of some boxes, by kind; `others` describes those of nobody of them."""

    containers: tuple[str, ...]
    networks: tuple[str, ...]
    volumes: tuple[str, ...]
    images: tuple[str, ...]  # ids and references
    others: tuple[str, ...]


def list_objects(boxes: Collection[str], images: Collection[str]) -> DockerObjects:
    """Lists the daemon's objects. Raises AgentboxError (exit 6) if it does not respond."""
    containers, other_containers = _split("container", ["ps", "--all"], "{{.Names}}", boxes)
    volumes, other_volumes = _split("volume", ["volume", "ls"], "{{.Name}}", boxes)
    networks, _ = _split("network", ["network", "ls"], "{{.Name}}", boxes)
    present = tuple(image for image in sorted(images) if _has_image(image))
    ids = {_image_id(image) for image in present}
    all_ids = set(docker(["image", "ls", "--all", "--quiet", "--no-trunc"], doing=_DOING).split())
    other_images = [f"image {image_id[:19]}" for image_id in sorted(all_ids - ids)]
    return DockerObjects(
        containers,
        networks,
        volumes,
        present,
        (*other_containers, *other_volumes, *other_images),
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


def _split(
    kind: str, command: list[str], name: str, boxes: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the boxes' objects, and descriptions of the others."""
    output = docker([*command, "--format", f"{name}\t{_PROJECT}"], doing=_DOING)
    rows = [line.split("\t") for line in output.splitlines()]
    return (
        tuple(row[0] for row in rows if row[1] in boxes),
        tuple(f"{kind} {row[0]}" for row in rows if row[1] not in boxes),
    )


def _has_image(image: str) -> bool:
    return succeeds(["docker", "image", "inspect", image])


def _image_id(image: str) -> str:
    return docker(["image", "inspect", "--format", "{{.Id}}", image], doing=_DOING).strip()
