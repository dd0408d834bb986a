"""Reads an image archive: its digests and layers, and the files of a layer."""

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode

_LABEL = "org.agentbox."
_CREATED_BY = "agentbox layer "


@dataclass(frozen=True)
class Layer:
    """A layer: its name in this product, `sha256:` digests, compressed size in bytes."""

    name: str
    digest: str
    diff_id: str
    size: int


@dataclass(frozen=True)
class BuildResult:
    """The result of a build. `image_id` is the digest of the config, as docker and podman use
    it.
    """

    path: Path
    tag: str  # agentbox:<plan12>
    image_id: str
    manifest_digest: str
    plan_digest: str
    closure_digest: str
    layers: tuple[Layer, ...]
    size: int  # of all compressed layers, bytes
    test_hooks: bool = False
    built: tuple[str, ...] = ()  # derivations that this call built

    @property
    def config_digest(self) -> str:
        return self.image_id


def blob_name(digest: str) -> str:
    """Return the path of a blob in the archive."""
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def read_archive(path: Path, built: tuple[str, ...] = ()) -> BuildResult:
    """Read an archive. Raises AgentboxError (exit 6) if the file is not an agentbox image."""
    try:
        with tarfile.open(path) as tar:
            return _read(tar, path, built)
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise AgentboxError(
            f"cannot read the image archive {path}: {error}", exit_code=ExitCode.ENGINE
        ) from error


def _read(tar: tarfile.TarFile, path: Path, built: tuple[str, ...]) -> BuildResult:
    descriptor = _json(tar, "index.json")["manifests"][0]
    manifest = _json(tar, blob_name(descriptor["digest"]))
    config = _json(tar, blob_name(manifest["config"]["digest"]))
    labels = config["config"]["Labels"]
    rows = zip(manifest["layers"], config["rootfs"]["diff_ids"], config["history"], strict=True)
    layers = tuple(
        Layer(
            history["created_by"].removeprefix(_CREATED_BY), layer["digest"], diff_id, layer["size"]
        )
        for layer, diff_id, history in rows
    )
    return BuildResult(
        path=path,
        tag=_json(tar, "manifest.json")[0]["RepoTags"][0],
        image_id=manifest["config"]["digest"],
        manifest_digest=descriptor["digest"],
        plan_digest=labels[f"{_LABEL}plan-digest"],
        closure_digest=labels[f"{_LABEL}closure-digest"],
        layers=layers,
        size=sum(layer.size for layer in layers),
        test_hooks=labels[f"{_LABEL}test-hooks"] == "true",
        built=built,
    )


def _json(tar: tarfile.TarFile, name: str) -> Any:
    stream = tar.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is not a file")
    return json.load(stream)
