"""The image: what goes in (tree), how it is packed (oci), what is in it (sbom), and the host's side of building it."""

from agentbox.image.archive import BuildResult, Layer, read_archive
from agentbox.image.flakeref import flake_of
from agentbox.image.nixbuild import build

__all__ = ["BuildResult", "Layer", "build", "flake_of", "read_archive"]
