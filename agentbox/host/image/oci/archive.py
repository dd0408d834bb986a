"""The archive: one tar that is an OCI layout and a docker archive at once, sharing its blobs.

`python -m agentbox.host.image.oci.archive SPEC OUT`. SPEC is JSON: `plan` (plan.json), `arch`,
`revision`, and `layers`, in order: `name`, `packed` (directory of layer.tar.gz and layer.json),
`listed` (tree.json).
"""

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any, BinaryIO

from agentbox.core.canonical import canonical_json, digest
from agentbox.core.errors import AgentboxError
from agentbox.host.image.oci.config import image_config
from agentbox.host.image.tree.entry import read_entries

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MTIME = 1


def check_owners(layers: list[tuple[str, Path]]) -> None:
    """Layers may share directories only. Raises AgentboxError with the path and both layers."""
    seen: dict[str, str] = {}
    directories: dict[str, str] = {}
    for layer, listed in layers:
        for entry in read_entries(listed):
            other = seen.get(entry.path) or (
                directories.get(entry.path) if entry.type != "dir" else None
            )
            if other:
                raise AgentboxError(
                    f"cannot pack the image: layers {other} and {layer} both have {entry.path}"
                )
            (directories if entry.type == "dir" else seen)[entry.path] = layer


def write_archive(spec: dict[str, Any], out: BinaryIO) -> None:
    """Writes the archive of the specification. Raises AgentboxError if two layers have the same
    path.
    """
    layers = [_layer(row) for row in spec["layers"]]
    check_owners([(row["name"], Path(row["listed"])) for row in spec["layers"]])
    plan = json.loads(Path(spec["plan"]).read_bytes())
    plan_digest = digest(canonical_json(plan))
    config = canonical_json(image_config(plan, layers, spec["revision"], spec["arch"], plan_digest))
    manifest = canonical_json(_manifest(config, layers))
    tag = f"agentbox:{plan_digest.removeprefix('sha256:')[:12]}"
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _members(tar, tag, config, manifest, layers)


def _layer(row: dict[str, str]) -> dict[str, Any]:
    packed = Path(row["packed"])
    return {
        "name": row["name"],
        "file": packed / "layer.tar.gz",
        **json.loads((packed / "layer.json").read_bytes()),
    }


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest(data), "size": len(data)}


def _manifest(config: bytes, layers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(_CONFIG, config),
        "layers": [
            {"mediaType": _LAYER, "digest": layer["digest"], "size": layer["size"]}
            for layer in layers
        ],
    }


def _blob(blob_digest: str) -> str:
    return f"blobs/sha256/{blob_digest.removeprefix('sha256:')}"


def _members(
    tar: tarfile.TarFile, tag: str, config: bytes, manifest: bytes, layers: list[dict[str, Any]]
) -> None:
    """Adds the members in the order for streaming readers: descriptions before their blobs."""
    descriptor = _descriptor(_MANIFEST, manifest) | {
        "annotations": {"org.opencontainers.image.ref.name": tag}
    }
    docker = [
        {
            "Config": _blob(digest(config)),
            "RepoTags": [tag],
            "Layers": [_blob(row["digest"]) for row in layers],
        }
    ]
    _add(tar, "oci-layout", canonical_json({"imageLayoutVersion": "1.0.0"}))
    _add(tar, "index.json", canonical_json({"schemaVersion": 2, "manifests": [descriptor]}))
    _add(tar, "manifest.json", canonical_json(docker))
    _add(tar, _blob(digest(manifest)), manifest)
    _add(tar, _blob(digest(config)), config)
    for layer in layers:
        with layer["file"].open("rb") as stream:
            _stream(tar, _blob(layer["digest"]), stream, layer["size"])


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    _stream(tar, name, io.BytesIO(data), len(data))


def _stream(tar: tarfile.TarFile, name: str, stream: BinaryIO, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, _MTIME, 0o644
    tar.addfile(info, stream)


def main(spec: str, out: str) -> None:
    """Prints one sentence and exits with 1 on an error: it is the last line of the derivation's
    log.
    """
    try:
        with Path(out).open("wb") as stream:
            write_archive(json.loads(Path(spec).read_text()), stream)
    except AgentboxError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main(*sys.argv[1:])
