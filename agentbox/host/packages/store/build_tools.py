"""The build tools of every derivation: a static busybox and a static bash, as the directory
bin/{busybox,bash}.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.paths import temporary_prefix
from agentbox.host.packages.apt.deb import extract

STORE_NAME = "busybox"
PACKAGES: Mapping[str, tuple[str, str]] = {
    "busybox-static": ("busybox", "busybox"),
    "bash-static": ("bash-static", "bash"),
}
"""Debian package -> the file in it, and its name in the directory."""


@contextmanager
def unpacked_seed(debs: Mapping[str, Path]) -> Iterator[Path]:
    """Yield a temporary directory with the seed, from packages by name. Raises FetchError for
    missing content.
    """
    with tempfile.TemporaryDirectory(prefix=temporary_prefix("seed")) as directory:
        root = Path(directory) / STORE_NAME
        (root / "bin").mkdir(parents=True)
        for package, (member, name) in PACKAGES.items():
            target = root / "bin" / name
            target.write_bytes(extract(debs[package], [member])[member])
            target.chmod(0o555)
        yield root


def missing_packages(names: Iterable[str]) -> list[str]:
    """Return the packages of the seed that are missing from `names`."""
    return sorted(set(PACKAGES) - set(names))
