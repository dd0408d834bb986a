"""RC-007: the container runs the image that its reference names, by local tag, by digest or by id; a wrong digest is
refused.

Column D. `up --registry` is not there yet: the digest is pulled from a registry on loopback by the engine's own client.
"""

from collections.abc import Callable

import pytest
from harness.container import DockerBox, docker
from harness.images import Images
from harness.registry import registry


def one_digit_off(digest: str) -> str:
    return digest[:-1] + ("0" if digest[-1] != "0" else "1")


def test_rc_007_id(running_docker: DockerBox) -> None:
    """What `up` writes into `.env` is the image id: the running container is of it."""
    written = (running_docker.compose_folder / ".env").read_text()
    assert f"AGENTBOX_IMAGE_REF={running_docker.image.image_id}\n" in written
    assert running_docker.inspect()["Image"] == running_docker.image.image_id


def test_rc_007_tag(docker_box: Callable[..., DockerBox], images: Images) -> None:
    """The tag of the archive."""
    box = docker_box(image_ref=images.plain.tag)
    box.create()
    assert box.inspect()["Config"]["Image"] == images.plain.tag
    assert box.inspect()["Image"] == images.plain.image_id


def test_rc_007_digest(docker_box: Callable[..., DockerBox], images: Images) -> None:
    """`name@sha256:…`, pulled: the same image id, and `/v1/meta` names the digest; one digit off: no container."""
    with registry(images.plain.path) as address:
        reference = f"{address}/agentbox@{images.plain.manifest_digest}"
        docker("pull", "--quiet", reference)
        try:
            box = docker_box(image_ref=reference)
            box.start()
            assert box.inspect()["Image"] == images.plain.image_id
            box.wait_ready()
            assert box.get("/v1/meta").json["image"]["digest"] == images.plain.manifest_digest
            assert box.sentinel()["digests"]["image"] == images.plain.manifest_digest
            wrong = docker_box(image_ref=one_digit_off(reference))
            refused(wrong)
        finally:
            box.remove()
            docker("rmi", reference)


@pytest.mark.parametrize("kind", ["id", "tag"])
def test_rc_007_wrong(docker_box: Callable[..., DockerBox], images: Images, kind: str) -> None:
    """An id or tag with one digit changed names no image: nothing is created."""
    reference = images.plain.image_id if kind == "id" else images.plain.tag
    refused(docker_box(image_ref=one_digit_off(reference)))


def refused(box: DockerBox) -> None:
    """Compose fails, naming the reference, and makes no container."""
    box.render()
    done = box.try_compose("up", "--no-start", "--no-build")
    assert done.code != 0
    assert box.options.image_ref.rpartition(":")[2][:12] in done.err
    assert not box.exists()
