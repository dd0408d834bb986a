"""The lock: each file of the image by name, version, size and SHA-256. No host, URL or date."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LOCK_VERSION = 1
ARCH_OF_SYSTEM: Mapping[str, str] = {"x86_64-linux": "amd64", "aarch64-linux": "arm64"}
SYSTEM_OF_ARCH: Mapping[str, str] = {arch: system for system, arch in ARCH_OF_SYSTEM.items()}


@dataclass(frozen=True, kw_only=True, order=True)
class LockEntry:
    """One file. `file` is its store name, `size` is in bytes, `sha256` bare hex."""

    name: str
    version: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, order=True)
class DebEntry(LockEntry):
    """A Debian package of one architecture. `features` = which need it (file stems of
    config/features).
    """

    features: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, order=True)
class WheelEntry(LockEntry):
    """A wheel, and the architectures that install it."""

    arch: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, order=True)
class NpmEntry(LockEntry):
    """An npm tarball. `paths` = where it is unpacked, `<feature>/node_modules/...`."""

    arch: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, order=True)
class BuildTools:
    """The build tools of one architecture. `nar` = recursive hash (`sha256:<hex>`) of the directory
    bin/{busybox,bash}.
    """

    files: tuple[LockEntry, ...]
    nar: str


@dataclass(frozen=True, kw_only=True, order=True)
class Lock:
    """A complete `agentbox.lock`. `seed` and `debian` are keyed by Debian architecture."""

    inputs: str
    source: str
    suite: str
    python: str
    systems: tuple[str, ...]
    features: tuple[str, ...]
    version: int = LOCK_VERSION
    seed: Mapping[str, BuildTools] = field(default_factory=dict)
    debian: Mapping[str, tuple[DebEntry, ...]] = field(default_factory=dict)
    wheels: tuple[WheelEntry, ...] = ()
    npm: tuple[NpmEntry, ...] = ()
    skills: Mapping[str, str] = field(default_factory=dict)  # `sha256:<hex>` by name
    mcp: Mapping[str, str] = field(default_factory=dict)  # the same by `<server>/<tool>`

    def tables(self) -> Iterator[tuple[str, tuple[LockEntry, ...]]]:
        """All tables of files with their names, in the order of the written file."""
        for arch, seed in sorted(self.seed.items()):
            yield f"seed.{arch}", seed.files
        for arch, rows in sorted(self.debian.items()):
            yield f"debian.{arch}", rows
        yield "wheels", self.wheels
        yield "npm", self.npm

    def entries(self) -> Iterator[LockEntry]:
        """All entries of all tables; a file shared by two architectures occurs twice."""
        for _, rows in self.tables():
            yield from rows

    def covers(self, system: str) -> bool:
        return system in self.systems
