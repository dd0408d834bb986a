"""Runs one check: `python -m agentbox.host.image.check NAME SPEC OUT`. SPEC is JSON: `arch`, `layers` (name, tree, listed,
packed), `budget` (bytes), `sbom` (file). Prints what is wrong and fails, or writes to OUT how much was looked at."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentbox.host.image.check.budget import over_budget
from agentbox.host.image.check.layers import Root
from agentbox.host.image.check.links import dangling
from agentbox.host.image.check.modes import loose
from agentbox.host.image.check.needed import missing
from agentbox.host.image.check.owners import unaccounted
from agentbox.host.image.check.strings import store_paths

CHECKS: dict[str, Callable[[dict[str, Any], Root], list[str]]] = {
    "layers": lambda spec, root: [*loose(root), *dangling(root), *store_paths(root)],
    "ldcache": lambda spec, root: missing(root, spec["arch"]),
    "sbom": lambda spec, root: unaccounted(root, Path(spec["sbom"])),
    "budget": lambda spec, root: over_budget(spec["layers"], spec["budget"]),
}


def main(name: str, spec_file: str, out: str) -> None:
    """An image without files passes nothing: that is a finding too."""
    spec = json.loads(Path(spec_file).read_text())
    root = Root.of(spec["layers"])
    findings = CHECKS[name](spec, root) if root.files else ["the image has no files"]
    if findings:
        sys.exit("\n".join(findings))
    Path(out).write_text(f"{name}: {len(root.files)} files in {len(spec['layers'])} layers\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
