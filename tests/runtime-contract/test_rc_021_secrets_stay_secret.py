"""RC-021: a secret's value is in no inspect output, environment, log line, journal or image layer;
a placeholder is replaced. Columns D and H. Backups, which the table names too, do not exist yet."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable

import pytest
from harness.box import Box
from harness.container import DockerBox, docker
from harness.images import CANARY, Images

ALL_ENVIRONMENTS = """
import pathlib
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("environ", "cmdline"):
        try:
            print((entry / name).read_bytes().decode(errors="replace").replace("\\0", "\\n"))
        except OSError:
            continue
"""
FOLDERS = ("/run/agentbox", "/var/lib/agentbox", "/var/log", "/workspace")


def test_rc_021_canary(make_box: Callable[..., Box]) -> None:
    """The admin token of the operator works, and is only in the file that was mounted."""
    box = make_box(secrets={"AGENTBOX_API_TOKEN": CANARY})
    box.start()
    box.wait_ready()
    assert box.get("/v1/beads", token=CANARY).status == 200
    assert box.get("/v1/beads", token=CANARY[:-1]).status == 401
    assert box.text("/run/secrets/AGENTBOX_API_TOKEN") == CANARY
    assert box.event("ApiTokenResolved")["source"] == "secret"
    assert CANARY not in "\n".join(box.log_lines())
    environments = box.python(ALL_ENVIRONMENTS).out
    assert "AGENTBOX_LOG_LEVEL=info" in environments
    assert CANARY not in environments
    for folder in FOLDERS:
        assert box.run(["grep", "-rl", "--", CANARY, folder]).out == "", folder
    assert box.run(["grep", "-rl", "--", "boot", "/var/lib/agentbox"]).out != ""
    if isinstance(box, DockerBox):
        assert CANARY not in json.dumps(box.inspect())
        assert CANARY not in json.dumps(json.loads(docker("image", "inspect", box.image.image_id)))
    rendered = [
        path for path in box.folder.rglob("*") if path.is_file() and "secrets" not in path.parts
    ]
    assert [str(path) for path in rendered if CANARY in path.read_text(errors="replace")] == []


@pytest.mark.parametrize(
    "placeholder",
    ["change-me", pytest.param("", marks=pytest.mark.sampled(4, family="variants of a box"))],
)
def test_rc_021_placeholder_is_replaced(make_box: Callable[..., Box], placeholder: str) -> None:
    """A known placeholder as token, or none, counts as unset: one is created, 0600, and the
    placeholder is not accepted."""
    box = make_box(secrets={"AGENTBOX_API_TOKEN": placeholder})
    box.start()
    box.wait_ready()
    assert box.event("ApiTokenResolved")["source"] == "generated"
    assert box.get("/v1/beads", token=placeholder).status == 401
    assert box.call("GET", "/v1/beads").status == 200
    assert len(box.token()) == 64
    assert (
        box.run(["stat", "-c", "%a %u", "/var/lib/agentbox/secrets/mgmt-key"]).out.strip()
        == "600 1000"
    )


def test_rc_021_layers(images: Images) -> None:
    """No layer has the token from the environment of the build, nor a file that secrets are stored
    in."""
    seen = 0
    for data, names in _layers(images):
        seen += len(names)
        assert CANARY.encode() not in data
        assert [
            n
            for n in names
            if n.endswith((".env", "mgmt-key", "id_rsa", ".token")) or "/run/secrets/" in n
        ] == []
    assert seen > 1000


def _layers(images: Images) -> list[tuple[bytes, list[str]]]:
    """Unpacked bytes and names of each layer of the archive."""
    found = []
    with tarfile.open(images.plain.path) as archive:
        for layer in images.plain.layers:
            stream = archive.extractfile(f"blobs/sha256/{layer.digest.removeprefix('sha256:')}")
            assert stream is not None
            data = gzip.decompress(stream.read())
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                found.append((data, tar.getnames()))
    return found
