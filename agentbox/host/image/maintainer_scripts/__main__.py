"""Runs the makers of one feature: `python -m agentbox.host.image.maintainer_scripts SPEC OUT`.

SPEC is JSON: `makers` (names of modules here), `trees` (the layers below the feature and its own,
as directories, of this machine's architecture), `loader` (of their libc). OUT is laid out as in the
image.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError
from agentbox.host.image.maintainer_scripts import texlive
from agentbox.host.image.maintainer_scripts.root import MergedRoot

MAKERS: Final[Mapping[str, Callable[[MergedRoot, Path], None]]] = {"texlive": texlive.make}


def main(spec_file: str, out: str) -> None:
    """Prints one sentence and exits with 1 on an error: it is the last line of the derivation's
    log.
    """
    spec = json.loads(Path(spec_file).read_text())
    try:
        root = MergedRoot.merged(
            [Path(tree) for tree in spec["trees"]], Path(spec["loader"]), Path("root")
        )
        for name in spec["makers"]:
            MAKERS[name](root, Path(out))
    except AgentboxError as error:
        sys.exit(f"{error.message}. {error.hint}")


if __name__ == "__main__":
    main(*sys.argv[1:])
