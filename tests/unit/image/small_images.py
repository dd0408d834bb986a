"""Makers of small real images: a layer of given files, an archive of given layers."""

import json
from pathlib import Path

from agentbox.host.image.oci.archive import write_archive
from agentbox.host.image.oci.layer import main as layer_main
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.entry import write_entries

PLAN = {
    "version": "1.2.3",
    "ports": [{"port": 9090, "publish": "127.0.0.1"}, {"port": 9093, "publish": ""}],
    "api": {"port": 9090},
    "digests": {"manifest": "sha256:m", "lock": "sha256:l", "seccomp": "sha256:s"},
    "test_hooks": False,
}


def layer(folder: Path, name: str, files: dict[str, bytes]) -> dict[str, str]:
    """A packed layer of these files."""
    tree = Tree(folder / f"tree-{name}")
    for path, data in files.items():
        tree.file(path, data, f"deb:{name}")
    listed = folder / f"{name}.json"
    write_entries(tree.entries, listed)
    layer_main(str(tree.root), str(listed), str(folder / f"packed-{name}"))
    return {
        "name": name,
        "packed": str(folder / f"packed-{name}"),
        "listed": str(listed),
        "tree": str(tree.root),
    }


def archive(folder: Path, layers: list[dict[str, str]], name: str = "image.tar") -> Path:
    """The archive of these layers."""
    (folder / "plan.json").write_text(json.dumps(PLAN, indent=1))
    spec = {
        "plan": str(folder / "plan.json"),
        "arch": "amd64",
        "revision": "dirty",
        "layers": layers,
    }
    with (folder / name).open("wb") as out:
        write_archive(spec, out)
    return folder / name
