"""Runs one check: `python -m agentbox.host.image.check NAME SPEC OUT`.

SPEC is JSON: `arch`, `layers` (name, tree, listed, packed), `budget` (bytes), `sbom` (file). Prints
the findings and fails, or writes the number of checked files to OUT.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentbox.host.image.check.budget import exceeding_budget
from agentbox.host.image.check.file_owners import unaccounted_files
from agentbox.host.image.check.layers import ImageRoot
from agentbox.host.image.check.links import dangling_links
from agentbox.host.image.check.modes import unexpected_modes
from agentbox.host.image.check.shared_libraries import missing_libraries
from agentbox.host.image.check.store_references import store_references

CHECKS: dict[str, Callable[[dict[str, Any], ImageRoot], list[str]]] = {
    "layers": lambda spec, root: [
        *unexpected_modes(root),
        *dangling_links(root),
        *store_references(root),
    ],
    "ldcache": lambda spec, root: missing_libraries(root, spec["arch"]),
    "sbom": lambda spec, root: unaccounted_files(root, Path(spec["sbom"])),
    "budget": lambda spec, root: exceeding_budget(spec["layers"], spec["budget"]),
}


def main(name: str, spec_file: str, out: str) -> None:
    """An image without files is a finding too."""
    spec = json.loads(Path(spec_file).read_text())
    root = ImageRoot.of(spec["layers"])
    findings = CHECKS[name](spec, root) if root.files else ["the image has no files"]
    if findings:
        sys.exit("\n".join(findings))
    Path(out).write_text(f"{name}: {len(root.files)} files in {len(spec['layers'])} layers\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
