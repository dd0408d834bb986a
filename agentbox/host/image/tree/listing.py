"""`share/files/<layer>.json`: the files of each package of a layer, so that the boot can count
them.
"""

from collections import defaultdict

from agentbox.core.canonical import canonical_json
from agentbox.host.image.tree.assemble import Tree

_DIRECTORY = "opt/agentbox/share/files"


def add_listing(tree: Tree, layer: str) -> None:
    """Writes the list of regular files with their sizes by owner. The list itself is not
    included.
    """
    packages: dict[str, dict[str, int]] = defaultdict(dict)
    for entry in tree.entries:
        if entry.type == "file":
            packages[entry.owner]["/" + entry.path] = entry.size
    listing = {
        "schema": 1,
        "layer": layer,
        "packages": {
            owner: {"count": len(files), "size": sum(files.values()), "files": files}
            for owner, files in packages.items()
        },
    }
    tree.file(f"{_DIRECTORY}/{layer}.json", canonical_json(listing), "generated:files")
