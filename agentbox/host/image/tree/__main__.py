"""Builds one layer's tree: `python -m agentbox.host.image.tree SPEC OUT LIST`.

SPEC is JSON: `layer`, `arch`, `python` ("3.13"), `interpreter` (argv of the build Python), and any
of `skeleton` (true), `debian` and `wheels` and `npm` (rows with `name`, `version`, `path`), `links`
and `wrappers` ([path, target]), `folders` (paths), `application` (a source directory), `overlays`
([owner, directory laid out as in the image]).
"""

import json
import sys
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree.application import add_application
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.debian import add_certificates, add_package, add_skeleton
from agentbox.host.image.tree.entry import write_entries
from agentbox.host.image.tree.listing import add_listing
from agentbox.host.image.tree.npm import add_tarball
from agentbox.host.image.tree.paths_and_modes import image_path
from agentbox.host.image.tree.pyc import add_bytecode
from agentbox.host.image.tree.wheel import add_environment, add_tree, add_wheel


def build(spec: dict[str, Any], root: Path) -> Tree:
    """Adds everything in the specification in a fixed order: the first owner of equal content keeps
    it.
    """
    tree = Tree(root)
    python: str = spec["python"]
    if spec.get("skeleton"):
        add_skeleton(tree)
    for row in spec.get("debian", ()):
        add_package(tree, row["name"], Path(row["path"]))
    add_certificates(tree)
    if version := spec.get("environment"):
        add_environment(tree, python, version)
    for row in spec.get("wheels", ()):
        add_wheel(
            tree, row["name"], Path(row["path"]), python, without_tests=bool(version)
        )  # only in the layer of every image
    for row in spec.get("npm", ()):
        add_tarball(tree, row["name"], Path(row["path"]), row["paths"], spec["arch"])
    for path, target in spec.get("links", ()):
        tree.link(image_path(path), target, "generated:links")
    for path, target in spec.get("wrappers", ()):
        tree.file(
            image_path(path), f'#!/bin/sh\nexec {target} "$@"\n'.encode(), "generated:links", 0o755
        )
    for path in spec.get("folders", ()):
        tree.directory(image_path(path))
    if source := spec.get("application"):
        add_application(tree, Path(source), python)
    for owner, directory in spec.get("overlays", ()):
        add_tree(tree, Path(directory), owner)
    add_bytecode(tree, spec["interpreter"])
    add_listing(tree, spec["layer"])
    return tree


def main(spec: str, out: str, list_file: str) -> None:
    """Prints one sentence and exits with 1 on an error: it is the last line of the derivation's
    log.
    """
    try:
        tree = build(json.loads(Path(spec).read_text()), Path(out))
    except AgentboxError as error:
        sys.exit(f"{error.message}. {error.hint}")
    write_entries(tree.entries, Path(list_file))


if __name__ == "__main__":
    main(*sys.argv[1:])
