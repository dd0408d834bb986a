"""Fetches what the lock names and builds the image of this checkout, so that suites that run beside each other find both."""

import sys

import locked_packages

from agentbox.core.paths import CHECKOUT
from agentbox.core.progress import NullProgress
from agentbox.host.image.nix_build import build


def main() -> None:
    """A link in `build` keeps it from Nix's garbage collection while the suites run."""
    locked_packages.bring()
    built = build(
        CHECKOUT, progress=NullProgress(), out_link=CHECKOUT / "build" / "tests" / "image"
    )
    sys.stdout.write(f"{built.tag} {built.manifest_digest}\n")


if __name__ == "__main__":
    main()
