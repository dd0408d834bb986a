"""The Debian sources of this host's apt: its own mirror and keyring, none built into agentbox."""

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentbox.host.packages.apt.control import parse_paragraphs
from agentbox.host.packages.errors import PrerequisiteError
from agentbox.host.packages.host_command import run

_CODE_NAMES = ("bullseye", "bookworm", "trixie", "forky", "duke", "sid")
_SUITES = frozenset([*_CODE_NAMES, "stable", "oldstable", "oldoldstable", "testing", "unstable"])
_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
)
_HINT = "Lock on a Debian machine; fetching needs no apt if the files are cached."
_LEGACY_ENTRY = re.compile(
    r"^deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)$"
)


@dataclass(frozen=True)
class Source:
    """An active entry of apt's sources. `signed_by` is a path, a key block, or ""."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""
    trusted: bool = False

    @property
    def is_debian(self) -> bool:
        """True if this looks like Debian's own archive: a Debian suite with the component main."""
        return "main" in self.components and any(
            _release(suite) in _SUITES for suite in self.suites
        )

    @property
    def is_security(self) -> bool:
        return any(suite.endswith(("-security", "/updates")) for suite in self.suites)

    @property
    def distrust(self) -> int:
        """Lower is likelier Debian's own: others publish under Debian's suite names, with their own
        key.
        """
        return 0 if "debian-archive" in self.signed_by else 2 if self.signed_by else 1


@dataclass(frozen=True)
class DebianMirror:
    """The host's Debian mirror. `security` is None if apt has none configured."""

    main: Source
    security: Source | None


def host_mirror() -> DebianMirror:
    """Return the Debian mirror of this host's apt. Raises PrerequisiteError (exit 3) without apt or
    a mirror.
    """
    candidates = sorted(
        (source for source in host_sources() if source.is_debian),
        key=lambda source: source.distrust,
    )
    main = next((source for source in candidates if not source.is_security), None)
    if main is None:
        raise PrerequisiteError(
            "cannot resolve Debian packages: no Debian mirror is configured for apt", _HINT
        )
    security = next((source for source in candidates if source.is_security), None)
    return DebianMirror(with_keyring(main), with_keyring(security) if security else None)


def with_keyring(source: Source) -> Source:
    """Return the same source, signed by the host's archive keyring if the entry has none."""
    if source.signed_by or source.trusted:
        return source
    keyring = next((str(path) for path in _KEYRINGS if path.exists()), "")
    return Source(source.uris, source.suites, source.components, keyring, source.trusted)


def host_sources() -> list[Source]:
    """Return every active binary entry of apt's configuration, in apt's order."""
    return [
        source
        for path in _source_files()
        for source in parse_sources(path.read_text(), deb822=path.suffix == ".sources")
    ]


def parse_sources(text: str, *, deb822: bool) -> list[Source]:
    """Parse the active binary entries of one file, in either format (sources.list(5))."""
    return list(_stanzas(text) if deb822 else _legacy_sources(text.splitlines()))


def _source_files() -> Iterator[Path]:
    if shutil.which("apt-config") is None:
        raise PrerequisiteError("cannot resolve Debian packages: apt is not installed", _HINT)
    result = run(
        [
            "apt-config",
            "shell",
            "FILE",
            "Dir::Etc::sourcelist/f",
            "PARTS",
            "Dir::Etc::sourceparts/d",
        ]
    )
    settings = dict(
        assignment.split("=", 1) for assignment in shlex.split(result.out) if "=" in assignment
    )
    file, directory = Path(settings.get("FILE", "")), Path(settings.get("PARTS", ""))
    if file.is_file():
        yield file
    if directory.is_dir():
        yield from sorted(
            path for path in directory.iterdir() if path.suffix in (".list", ".sources")
        )


def _stanzas(text: str) -> Iterator[Source]:
    for fields in parse_paragraphs(text):
        values = {key.lower(): value for key, value in fields.items()}
        if "deb" not in values.get("types", "").split() or values.get("enabled", "yes").lower() in (
            "no",
            "false",
        ):
            continue
        yield Source(
            tuple(values.get("uris", "").split()),
            tuple(values.get("suites", "").split()),
            tuple(values.get("components", "").split()),
            values.get("signed-by", ""),
            values.get("trusted", "no").lower() in ("yes", "true"),
        )


def _legacy_sources(lines: Iterable[str]) -> Iterator[Source]:
    for line in lines:
        match = _LEGACY_ENTRY.match(line.split("#", 1)[0].strip())
        if match is None:
            continue
        options = dict(
            assignment.split("=", 1)
            for assignment in (match["options"] or "").split()
            if "=" in assignment
        )
        trusted = options.get("trusted", "no") in ("yes", "true")
        components = tuple(match["components"].split())
        yield Source(
            (match["uri"],), (match["suite"],), components, options.get("signed-by", ""), trusted
        )


def _release(suite: str) -> str:
    return suite.split("/", 1)[0].split("-", 1)[0]
