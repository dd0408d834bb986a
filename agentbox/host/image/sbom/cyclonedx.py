"""Lock rows -> CycloneDX 1.6, by cyclonedx-python-lib: sorted, with a fixed time and a serial
derived from the plan.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from agentbox.host.image.sbom import licenses

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def purl(source: str, row: dict[str, Any], *, arch: str, suite: str) -> PackageURL:
    """Return the package URL of a lock row (`source` is deb, wheel or npm)."""
    if source == "deb":
        return PackageURL(
            "deb", "debian", row["name"], row["version"], {"arch": arch, "distro": suite}
        )
    if source == "wheel":
        return PackageURL("pypi", None, row["name"].lower().replace("_", "-"), row["version"])
    scope, _, name = row["name"].rpartition("/")
    return PackageURL("npm", scope or None, name, row["version"])


def owner(component: Component) -> str:
    """Return this component's owner name in the lists of the layers (`deb:git`)."""
    return next(item.value or "" for item in component.properties if item.name == "agentbox:owner")


def make_bom(spec: dict[str, Any], plan: dict[str, Any], plan_digest: str) -> Bom:
    """Return the complete bill: `spec` has `arch`, `suite` and rows under `deb`, `wheel`, `npm`."""
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"urn:agentbox:plan:{plan_digest}"))
    bom.metadata.timestamp = _EPOCH
    bom.metadata.component = Component(
        type=ComponentType.CONTAINER, name="agentbox", version=plan["version"], bom_ref="agentbox"
    )
    for source in ("deb", "wheel", "npm"):
        for row in spec.get(source, ()):
            bom.components.add(_component(source, row, arch=spec["arch"], suite=spec["suite"]))
    bom.register_dependency(bom.metadata.component, sorted(bom.components))
    return bom


def to_text(bom: Bom) -> str:
    """Return the document; equal bills give equal text."""
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _component(source: str, row: dict[str, Any], *, arch: str, suite: str) -> Component:
    url = purl(source, row, arch=arch, suite=suite)
    license_name = _license(source, row)
    return Component(
        type=ComponentType.LIBRARY,
        name=row["name"],
        version=row["version"],
        purl=url,
        bom_ref=url.to_string(),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=row["sha256"])],
        licenses=[DisjunctiveLicense(name=license_name)] if license_name else [],
        properties=[
            Property(name="agentbox:features", value=" ".join(row["features"])),
            Property(name="agentbox:file", value=row["file"]),
            Property(name="agentbox:owner", value=f"{source}:{row['name']}"),
        ],
    )


def _license(source: str, row: dict[str, Any]) -> str:
    file = Path(row["path"])
    if source == "deb":
        return licenses.deb_license(file, row["name"])
    return licenses.wheel_license(file) if source == "wheel" else licenses.npm_license(file)
