"""Every file has one owner that the bill of materials or the rules know, and every owner has a file."""

import json
from collections import defaultdict
from pathlib import Path

from agentbox.host.image.check.layers import ImageRoot

_OWN_SOURCES = ("source:agentbox",)
# Files that no package brings. A new kind of generated file is named here, or it has no owner.
GENERATED = {
    "generated:ca-bundle": "the certificates of the image in one file, under the names that programs look for",
    "generated:config": "what the plan was rendered to",
    "generated:files": "the list of each layer's files",
    "generated:links": "links and wrappers of the feature files",
    "generated:made": "what maintainer scripts would have made from a feature's packages",
    "generated:sbom": "the bill of materials itself",
    "generated:skeleton": "the links that merge /bin and its like into /usr",
    "generated:venv": "the virtual environment around the wheels",
}


def unaccounted_files(root: ImageRoot, sbom: Path) -> list[str]:
    """One sentence a file without owner, a path with two owners, an owner without file or unknown to the bill."""
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
            and entry.owner not in _OWN_SOURCES
            and entry.owner not in GENERATED
        ):
            findings.append(
                f"layer {each.layer}, {entry.path}: nobody owns it ({entry.owner or 'no owner stated'})"
            )
    findings += [
        f"{path}: owned by {' and by '.join(sorted(owner))}"
        for path, owner in sorted(owners.items())
        if len(owner) > 1
    ]
    present_owners = {each.entry.owner for each in root.entries}
    findings += [
        f"{ref}: in the bill of materials, but no file is its"
        for who, ref in ref_by_owner.items()
        if who not in present_owners
    ]
    return findings


def _owner(component: dict[str, object]) -> str:
    properties = component["properties"]
    assert isinstance(properties, list)
    return str(next(item["value"] for item in properties if item["name"] == "agentbox:owner"))
