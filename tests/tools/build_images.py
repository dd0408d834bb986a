"""Fetches what the lock names and builds the image of this checkout, so that suites that run beside each other find both."""

import sys

from agentbox.image import build
from agentbox.lock import fetch_all
from agentbox.lockfile import read
from agentbox.progress import NullProgress
from agentbox.settings import CHECKOUT, HostPaths


def main() -> None:
    """A link in `build` keeps it from Nix's garbage collection while the suites run."""
    fetch_all(read(CHECKOUT / "agentbox.lock"), cache=HostPaths.of_this_user().cache, progress=NullProgress())
    built = build(CHECKOUT, progress=NullProgress(), out_link=CHECKOUT / "build" / "tests" / "image")
    sys.stdout.write(f"{built.tag} {built.manifest_digest}\n")


if __name__ == "__main__":
    main()
