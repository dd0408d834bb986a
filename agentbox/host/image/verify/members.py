"""The inputs of a comparison: the members of a layer's tar, of a directory, of an image archive."""

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.image.archive import blob_name
from agentbox.host.image.tree.entry import read_entries

_BLOCK = 1 << 20


@dataclass(frozen=True)
class ArchiveMember:
    """A path; its fields are in the order of reporting. `owner` is `uid:gid`, "" if unknown."""

    type: str
    mode: str
    owner: str
    size: int
    sha256: str
    target: str


Members = Mapping[str, ArchiveMember]


def tar_members(stream: IO[bytes]) -> Members:
    """Return the members of a tar, compressed or not; a hard link is the file that it points to."""
    members: dict[str, ArchiveMember] = {}
    with tarfile.open(fileobj=stream, mode="r|*") as tar:
        for info in tar:
            members[info.name] = members[info.linkname] if info.islnk() else _tar_member(tar, info)
    return members


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> ArchiveMember:
    stream = tar.extractfile(info) if info.isreg() else None
    kind = (
        "file"
        if info.isreg()
        else "dir"
        if info.isdir()
        else "link"
        if info.issym()
        else f"type {info.type!r}"
    )
    code = _sha256(stream) if stream else ""
    return ArchiveMember(
        kind, f"{info.mode:o}", f"{info.uid}:{info.gid}", info.size, code, info.linkname
    )


def directory_members(root: Path) -> Members:
    """Return the paths below a directory of the Nix store, which keeps no owner and only one bit of
    the mode.
    """
    return {
        path.relative_to(root).as_posix(): _path_member(path) for path in sorted(root.rglob("*"))
    }


def path_members(path: Path) -> Members:
    """Return a directory's members, or a single file under the name `.`."""
    return directory_members(path) if path.is_dir() else {".": _path_member(path)}


def list_members(file: Path) -> Members:
    """Return the entries of a tree.json."""
    return {
        entry.path: ArchiveMember(
            entry.type,
            f"{entry.mode:o}",
            f"{entry.uid}:{entry.gid}",
            entry.size,
            entry.sha256,
            entry.target,
        )
        for entry in read_entries(file)
    }


def _path_member(path: Path) -> ArchiveMember:
    if path.is_symlink():
        return ArchiveMember("link", "", "", 0, "", str(path.readlink()))
    if path.is_dir():
        return ArchiveMember("dir", "", "", 0, "", "")
    status = path.stat()
    with path.open("rb") as stream:
        return ArchiveMember(
            "file", f"{status.st_mode & 0o111:o}", "", status.st_size, _sha256(stream), ""
        )


def _sha256(stream: IO[bytes]) -> str:
    hasher = hashlib.sha256()
    while chunk := stream.read(_BLOCK):
        hasher.update(chunk)
    return hasher.hexdigest()


class Archive:
    """An image archive open for comparing; docker's `save` format is supported too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._tar = tarfile.open(path)  # noqa: SIM115  # closed by close()
            descriptor = json.load(self._open("manifest.json"))[0]
            self.config_bytes = self._open(descriptor["Config"]).read()
        except (OSError, tarfile.TarError, KeyError, ValueError) as error:
            raise AgentboxError(
                f"cannot read the image archive {path}: {error}", exit_code=ExitCode.USAGE
            ) from error
        self._layers: list[str] = descriptor["Layers"]
        self.tag: str = (descriptor["RepoTags"] or [""])[0]
        config = json.loads(self.config_bytes)
        self.diff_ids: list[str] = config["rootfs"]["diff_ids"]
        self.names = [
            row["created_by"].removeprefix("agentbox layer ") for row in config["history"]
        ]

    @property
    def image_id(self) -> str:
        return f"sha256:{hashlib.sha256(self.config_bytes).hexdigest()}"

    def members(self, index: int) -> Members:
        """Return the members of one layer."""
        return tar_members(self._open(self._layers[index]))

    def read(self, layer: str, path: str) -> bytes:
        """Return a file of a layer. Raises AgentboxError if the layer does not have it."""
        with tarfile.open(fileobj=self._open(self._layers[self.names.index(layer)])) as tar:
            for info in tar:
                if info.name == path and (stream := tar.extractfile(info)):
                    return stream.read()
        raise AgentboxError(f"cannot read {path} of {self.path}: layer {layer} has no such file")

    def damaged_blobs(self) -> Iterator[str]:
        """Report blobs whose bytes do not match the digest in their name."""
        for info in self._tar:
            name = info.name.removeprefix("blobs/sha256/")
            if info.isreg() and name != info.name:
                actual = _sha256(self._open(info.name))
                if blob_name(actual) != info.name:
                    yield f"blob {name[:12]}…: sha256 {actual[:12]}…"

    def close(self) -> None:
        self._tar.close()

    def _open(self, name: str) -> IO[bytes]:
        stream = self._tar.extractfile(name)
        if stream is None:
            raise ValueError(f"{name} is not a file")
        return stream
