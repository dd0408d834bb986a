"""Every file has one owner that the bill of materials or the rules know, and every owner has a file."""

import json
from collections import defaultdict
from pathlib import Path

from agentbox.host.image.check.layers import Root

_OURS = ("source:agentbox",)
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


def unaccounted(root: Root, sbom: Path) -> list[str]:
    """One sentence a file without owner, a path with two owners, an owner without file or unknown to the bill."""
    components = json.loads(sbom.read_text()).get("components", [])
    known = {_owner(each): each["bom-ref"] for each in components}
    owners: dict[str, set[str]] = defaultdict(set)
    found = []
    for each in root.all:
        entry = each.entry
        if entry.type == "dir":
            continue
        owners[entry.path].add(f"{entry.owner} in layer {each.layer}")
        if entry.owner not in known and entry.owner not in _OURS and entry.owner not in GENERATED:
            found.append(f"layer {each.layer}, {entry.path}: nobody owns it ({entry.owner or 'no owner stated'})")
    found += [
        f"{path}: owned by {' and by '.join(sorted(who))}" for path, who in sorted(owners.items()) if len(who) > 1
    ]
    having = {each.entry.owner for each in root.all}
    found += [f"{ref}: in the bill of materials, but no file is its" for who, ref in known.items() if who not in having]
    return found


def _owner(component: dict[str, object]) -> str:
    properties = component["properties"]
    assert isinstance(properties, list)
    return str(next(each["value"] for each in properties if each["name"] == "agentbox:owner"))
