"""RC-007: the container runs the image that its reference names, by local tag, by digest or by id; a wrong digest is
refused.

Column D. The registry is one on loopback that speaks the distribution protocol; the engine's own client pulls.
"""

from collections.abc import Callable

import pytest
from harness.container import DockerBox, docker
from harness.images import Images
from harness.outcomes import Ran
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


def test_rc_007_registry(docker_box: Callable[..., DockerBox], images: Images) -> None:
    """`up --registry`: the container is of the pulled image, which `.env`, `/v1/meta` and the
    sentinel name by digest; a second `up` changes nothing, `restart` keeps the image, and nothing
    is built."""
    wanted = images.plain.manifest_digest
    with registry(images.plain.path) as address:
        reference = f"{address}/agentbox@{wanted}"
        box = docker_box()
        try:
            assert up(box, reference).code == 0
            assert f"AGENTBOX_IMAGE_REF={reference}\n" in (box.compose_folder / ".env").read_text()
            assert box.inspect()["Image"] == images.plain.image_id
            assert box.inspect()["Config"]["Image"] == reference
            assert box.get("/v1/meta").json["image"]["digest"] == wanted
            assert box.sentinel()["digests"]["image"] == wanted
            assert not (box.state.directory / "image").exists()
            container = box.inspect()["Id"]
            again = up(box, reference)
            stages = {line.split()[0]: line.split()[1] for line in again.err.splitlines() if line}
            assert (stages["image"], stages["start"]) == ("unchanged", "unchanged")
            assert box.cli("restart").code == 0
            assert (box.inspect()["Id"], box.get("/v1/meta").json["image"]["digest"]) == (
                container,
                wanted,
            )
        finally:
            box.remove()
            docker("rmi", "--force", reference)


def test_rc_007_registry_refuses(docker_box: Callable[..., DockerBox], images: Images) -> None:
    """A digest that the registry lacks, other bytes under that digest, a tag instead of a digest, an image with test
    hooks: the exit code and the sentence of each, and no container."""
    plain = images.plain.manifest_digest
    wrong, forged = one_digit_off(plain), f"sha256:{'5' * 64}"
    with registry(images.plain.path, forged={forged: plain}) as address:
        box = docker_box()
        for reference, code, words in (
            (f"{address}/agentbox@{wrong}", 4, "manifest unknown"),
            (f"{address}/agentbox@{forged}", 4, "cannot pull"),
            (f"{address}/agentbox:latest", 2, "it has no digest"),
        ):
            done = up(box, reference)
            assert refusal(done) == (code, True), reference
            assert words in done.err
            assert not box.exists()
    with registry(images.hooks.path) as address:
        reference = f"{address}/agentbox@{images.hooks.manifest_digest}"
        try:
            done = up(box, reference)
            assert refusal(done) == (5, True)
            assert "its test-hooks is true, this checkout has false" in done.err
            assert not box.exists()
        finally:
            docker("rmi", "--force", reference)


def up(box: DockerBox, reference: str) -> Ran:
    return box.cli("up", "--registry", reference)


def refusal(done: Ran) -> tuple[int, bool]:
    """The exit code, and whether one sentence has the reason."""
    return done.code, "agentbox: cannot " in done.err and "Traceback" not in done.err


def refused(box: DockerBox) -> None:
    """Compose fails, naming the reference, and creates no container."""
    box.render()
    done = box.try_compose("up", "--no-start", "--no-build")
    assert done.code != 0
    assert box.options.image_ref.rpartition(":")[2][:12] in done.err
    assert not box.exists()
