"""Free space where a box writes: its state, the cache of fetched files, the Nix store, the engine's own root."""

import os
from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.host import Host, room_at
from agentbox.host.doctor.row import Row
from agentbox.host.engines.command import run

NAME = "disk"
TITLE = "free space where a box writes"
GIB = 1 << 30
# Ours to choose: a first build leaves the fetched files, the unpacked layers, the archive and the engine's own copy of an
# image of 150 MB compressed; below the second number writes are soon refused, and a box ends agents that fill the disk (64 MiB free).
BUILD, RUN = 5 * GIB, GIB // 2


def look(host: Host) -> Iterator[Row]:
    places = {"state": (host.state.folder, RUN), "cache": (host.paths.cache, RUN)}
    if host.contained:
        places["nix"] = (Path("/nix"), BUILD)
        if host.daemon.state == "answers" and host.daemon.host.startswith("unix://"):
            root = run(["docker", "info", "--format", "{{.DockerRootDir}}"], doing="ask docker where it keeps images")
            places["engine"] = (Path(root.strip()), BUILD)
    for name, (path, wanted) in places.items():
        yield _row(name, path, wanted)


def _row(name: str, path: Path, wanted: int) -> Row:
    found = os.statvfs(room_at(path))
    free, nodes = found.f_bavail * found.f_frsize, found.f_favail
    said = f"{free / GIB:.1f} GiB free at {path}"
    facts = {"free": free, "inodes": nodes, "path": str(path)}
    if free < RUN or (found.f_files and nodes < 10_000):
        advice = "Free some space; `docker image prune` and `nix-collect-garbage` remove what nothing uses."
        return Row(check=NAME, subject=name, state="bad", said=f"{said}, {nodes} files can be made", advice=advice, facts=facts)  # fmt: skip
    if free < wanted:
        advice = f"A first build wants {wanted / GIB:.0f} GiB."
        return Row(check=NAME, subject=name, state="warning", said=said, advice=advice, facts=facts)
    return Row(check=NAME, subject=name, state="good", said=said, facts=facts)
