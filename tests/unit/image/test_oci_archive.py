"""The archive has one image in two forms, and reads back as it was written."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from small_images import PLAN, archive, layer

from agentbox.core.canonical import canonical_json, digest, sha256_hex
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.image.archive import read_archive
from agentbox.host.image.oci.config import closure_digest
from agentbox.plan.names import HOME


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return archive(
        tmp_path,
        [layer(tmp_path, "base", {"usr/bin/a": b"a"}), layer(tmp_path, "app", {"usr/bin/b": b"b"})],
    )


def blob(tar: tarfile.TarFile, of: str) -> bytes:
    stream = tar.extractfile(f"blobs/sha256/{of.removeprefix('sha256:')}")
    assert stream is not None
    return stream.read()


def load(tar: tarfile.TarFile, name: str) -> Any:
    stream = tar.extractfile(name)
    assert stream is not None
    return json.load(stream)


def test_both_spellings_name_the_same_blobs(image: Path) -> None:
    """index.json and manifest.json lead to one config and the same layers, each under its own digest, tagged by plan."""
    with tarfile.open(image) as tar:
        assert load(tar, "oci-layout") == {"imageLayoutVersion": "1.0.0"}
        described = load(tar, "index.json")["manifests"][0]
        docker = load(tar, "manifest.json")[0]
        manifest = json.loads(blob(tar, described["digest"]))
        names = [
            f"blobs/sha256/{each['digest'].removeprefix('sha256:')}" for each in manifest["layers"]
        ]
        assert docker["Layers"] == names
        assert docker["Config"].endswith(manifest["config"]["digest"].removeprefix("sha256:"))
        for info in tar:
            if info.name.startswith("blobs/"):
                stream = tar.extractfile(info)
                assert stream is not None
                assert sha256_hex(stream.read()) == info.name.rpartition("/")[2]
    tag = f"agentbox:{digest(canonical_json(PLAN)).removeprefix('sha256:')[:12]}"
    assert (
        docker["RepoTags"]
        == [tag]
        == [described["annotations"]["org.opencontainers.image.ref.name"]]
    )


def test_the_config_is_the_plans(image: Path) -> None:
    """User, entry point, published ports, labels, the closure over the diff ids, a fixed time."""
    with tarfile.open(image) as tar:
        manifest = json.loads(blob(tar, load(tar, "index.json")["manifests"][0]["digest"]))
        config = json.loads(blob(tar, manifest["config"]["digest"]))
    inner, diff_ids = config["config"], config["rootfs"]["diff_ids"]
    assert config["created"] == "1970-01-01T00:00:00Z"
    assert inner["User"] == "1000:1000"
    assert inner["Entrypoint"] == ["/opt/agentbox/venv/bin/python", "-I", "-m", "agentbox.box.boot"]
    assert inner["ExposedPorts"] == {"9090/tcp": {}}
    assert inner["Labels"]["org.agentbox.plan-digest"] == digest(canonical_json(PLAN))
    assert inner["Labels"]["org.agentbox.test-hooks"] == "false"
    assert inner["Labels"]["org.agentbox.closure-digest"] == closure_digest(diff_ids)
    assert f"AGENTBOX_CLOSURE_DIGEST={closure_digest(diff_ids)}" in inner["Env"]
    homes = [entry for entry in inner["Env"] if entry.startswith("HOME=")]
    assert homes == [f"HOME={HOME}"], "agents write the workspace"
    known = (
        (CHECKOUT / "config/etc/passwd").read_text().splitlines()
    )  # the path that curl tries next
    assert [row.split(":")[5] for row in known if row.split(":")[2] == "1000"] == [HOME]


def test_reading_gives_what_was_written(image: Path) -> None:
    """Names, digests and sizes of the layers; the image id is the config's digest."""
    found = read_archive(image)
    assert [each.name for each in found.layers] == ["base", "app"]
    assert found.size == sum(each.size for each in found.layers) > 0
    assert found.closure_digest == closure_digest([each.diff_id for each in found.layers])
    assert (found.plan_digest, found.test_hooks) == (digest(canonical_json(PLAN)), False)
    with tarfile.open(image) as tar:
        assert found.image_id == digest(blob(tar, found.config_digest))


def test_layers_share_no_file(tmp_path: Path) -> None:
    """A path in two layers stops the build and names both, whether the bytes differ or not."""
    layers = [layer(tmp_path, "base", {"etc/x": b"1"}), layer(tmp_path, "app", {"etc/x": b"1"})]
    with pytest.raises(AgentboxError, match=r"layers base and app both have etc/x"):
        archive(tmp_path, layers)


def test_a_file_under_anothers_folder_name_is_refused(tmp_path: Path) -> None:
    """A directory of one layer that is a file in another is no sharing."""
    layers = [layer(tmp_path, "base", {"etc/x/y": b"1"}), layer(tmp_path, "app", {"etc/x": b"1"})]
    with pytest.raises(AgentboxError, match="both have etc/x"):
        archive(tmp_path, layers)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """What is no archive of ours ends in a sentence with exit code 6."""
    (tmp_path / "x.tar").write_bytes(b"no tar")
    with pytest.raises(AgentboxError, match="cannot read the image archive") as refused:
        read_archive(tmp_path / "x.tar")
    assert refused.value.exit_code == ExitCode.ENGINE
