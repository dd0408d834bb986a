"""Every file has one owner that is in the bill of materials or the rules, and every owner has a
file.
"""

import json
from collections import defaultdict
from pathlib import Path

from agentbox.host.image.check.layers import ImageRoot

_LOCAL_SOURCES = ("source:agentbox",)
# Files that come from no package. Add new kinds of generated files here.
GENERATED = {
    "generated:ca-bundle": "the certificates of the image in one file, under its common names",
    "generated:config": "the rendered plan",
    "generated:files": "the list of each layer's files",
    "generated:links": "links and wrappers of the feature files",
    "generated:made": "output of the maintainer scripts' replacements for a feature's packages",
    "generated:sbom": "the bill of materials itself",
    "generated:skeleton": "the links that merge /bin and its like into /usr",
    "generated:venv": "the virtual environment around the wheels",
}


def unaccounted_files(root: ImageRoot, sbom: Path) -> list[str]:
    """Report files without owner, paths with two owners, and owners without a file or unknown to
    the bill.
    """
    components = json.loads(sbom.read_text()).get("components", [])
    ref_by_owner = {_owner(item): item["bom-ref"] for item in components}
    owners: dict[str, set[str]] = defaultdict(set)
    findings = []
    for each in root.entries:
        entry = each.entry
        if entry.type == "dir":
            continue
        owners[entry.path].add(f"{entry.owner} in layer {each.layer}")
        if (
            entry.owner not in ref_by_owner
            and entry.owner not in _LOCAL_SOURCES
            and entry.owner not in GENERATED
        ):
            findings.append(
                f"layer {each.layer}, {entry.path}: no known owner ({entry.owner or 'none stated'})"
            )
    findings += [
        f"{path}: owned by {' and by '.join(sorted(owner))}"
        for path, owner in sorted(owners.items())
        if len(owner) > 1
    ]
    present_owners = {each.entry.owner for each in root.entries}
    findings += [
        f"{ref}: in the bill of materials, but it owns no file"
        for owner, ref in ref_by_owner.items()
        if owner not in present_owners
    ]
    return findings


def _owner(component: dict[str, object]) -> str:
    properties = component["properties"]
    assert isinstance(properties, list)
    return str(next(item["value"] for item in properties if item["name"] == "agentbox:owner"))
