"""[image]: the package source, and the systems that the image is built for."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import PackageName, TextPattern, Unique, key

System = Literal["x86_64-linux", "aarch64-linux"]


@dataclass(frozen=True, kw_only=True)
class ImageTable:
    """Contents of the image besides the features."""

    source: Literal["debian", "nixpkgs"] = key("debian", "rebuild")
    suite: Annotated[str, TextPattern("^[a-z]+$")] = key("trixie", "rebuild")
    systems: Annotated[tuple[System, ...], Unique()] = key((), "rebuild")
    extra_packages: Annotated[tuple[PackageName, ...], Unique()] = key((), "rebuild")
