"""Writes the bill of an image: `python -m agentbox.host.image.sbom SPEC PLAN OUT`.

SPEC is JSON: `arch`, `suite`, and the lock rows of the layers under `deb`, `wheel`, `npm`, each
with `path`. OUT becomes a directory laid out as in the image.
"""

import json
import sys
from pathlib import Path

from agentbox.core.canonical import canonical_json, digest
from agentbox.host.image.sbom.cyclonedx import make_bom, to_text

SBOM_PATH = "opt/agentbox/share/sbom.cdx.json"


def main(spec: str, plan: str, out: str) -> None:
    plan_data = json.loads(Path(plan).read_bytes())
    bom = make_bom(json.loads(Path(spec).read_text()), plan_data, digest(canonical_json(plan_data)))
    file = Path(out) / SBOM_PATH
    file.parent.mkdir(parents=True)
    file.write_text(to_text(bom))


if __name__ == "__main__":
    main(*sys.argv[1:])
