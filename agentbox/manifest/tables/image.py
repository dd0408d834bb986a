"""[image]: the package source, and the systems that the image is built for."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Pattern, Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import PackageName

System = Literal["x86_64-linux", "aarch64-linux"]


@frozen
class ImageTable:
    """What the image is made of, beside the features."""

    source: Literal["debian", "nixpkgs"] = key("debian", "rebuild", doc="Where packages come from.")
    suite: Annotated[str, Pattern("^[a-z]+$")] = key(
        "trixie", "rebuild", doc="Debian suite.", when={".source": "debian"}
    )
    systems: Annotated[tuple[System, ...], Unique()] = key(
        (), "rebuild", doc="Systems the lock must cover; [] = the one `agentbox lock` runs on."
    )
    extra_packages: Annotated[tuple[PackageName, ...], Unique()] = key(
        (), "rebuild", doc="Packages added to the image, named as `image.source` names them."
    )
