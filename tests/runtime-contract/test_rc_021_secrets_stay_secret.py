"""RC-021: a secret's value stands in no inspect output, environment, log line or image layer; a placeholder is replaced."""

import json
import tarfile
from collections.abc import Callable

from harness.container import DockerBox, docker
from harness.images import Images

CANARY = "canary-5f2d9c71a0b34e68"


def test_rc_021_canary(docker_box: Callable[..., DockerBox]) -> None:
    """The admin token given by the operator works, and is nowhere else."""
    box = docker_box(secrets={"AGENTBOX_API_TOKEN": CANARY})
    box.start()
    box.wait_ready()
    assert box.get("/v1/beads", token=CANARY).status == 200
    assert box.get("/v1/beads", token="wrong").status == 401
    assert CANARY not in json.dumps(box.inspect())
    assert CANARY not in "\n".join(box.log_lines())
    environments = box.run(["bash", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'"])
    assert "AGENTBOX_LOG_LEVEL" in environments.out
    assert CANARY not in environments.out
    assert CANARY not in (box.folder / "docker-compose.yml").read_text()
    assert CANARY not in box.run(["bash", "-c", "cat /var/lib/agentbox/events/*.jsonl"]).out


def test_rc_021_placeholder_is_replaced(docker_box: Callable[..., DockerBox]) -> None:
    """A known placeholder as token counts as unset: one is generated, 0600, and the placeholder does not open the API."""
    box = docker_box(secrets={"AGENTBOX_API_TOKEN": "change-me"})
    box.start()
    box.wait_ready()
    assert box.event("ApiTokenResolved")["source"] == "generated"
    assert box.get("/v1/beads", token="change-me").status == 401
    assert box.get("/v1/beads", token=box.token()).status == 200
    assert box.run(["stat", "-c", "%a %u", "/var/lib/agentbox/secrets/mgmt-key"]).out.strip() == "600 1000"


def test_rc_021_layers(images: Images) -> None:
    """No layer holds an environment file, a token or a private key; the archive has layers to look at."""
    seen = 0
    with tarfile.open(images.plain.path) as archive:
        for member in archive.getmembers():
            if not member.name.startswith("blobs/sha256/"):
                continue
            blob = archive.extractfile(member)
            assert blob is not None
            if blob.read(2) != b"\x1f\x8b":
                continue
            blob.seek(0)
            with tarfile.open(fileobj=blob, mode="r:gz") as layer:
                names = layer.getnames()
            seen += len(names)
            assert not [n for n in names if n.endswith((".env", "mgmt-key", "id_rsa", ".token"))]
    assert seen > 1000
    assert docker("image", "inspect", images.plain.image_id)
