"""A private apt: its own state, cache and sources in a directory of the cache, for one architecture
of one suite.

Works as any user. The host's apt configuration still applies to reaching the mirror (proxies,
credentials, timeouts), but not its sources, pins, hooks and installed packages.
"""

import fcntl
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agentbox.host.network.diagnosis import Cause, diagnose
from agentbox.host.packages.apt.apt_sources import DebianMirror, Source
from agentbox.host.packages.apt.apt_transport import apt_transport
from agentbox.host.packages.errors import (
    DiskFullError,
    FetchError,
    NoNetworkError,
    NotTrustedError,
)
from agentbox.host.packages.host_command import CommandResult, run

_CLEARED = (
    "APT::Architectures",
    "APT::Update::Pre-Invoke",
    "APT::Update::Post-Invoke",
    "APT::Update::Post-Invoke-Success",
)
# printed by apt when a mirror responds with lists that cannot be trusted
_REFUSED = re.compile(
    r" 40\d |GPG error|NO_PUBKEY|not signed|Hash Sum mismatch|does not have a Release file"
)
_UNREACHED = re.compile(
    r"^[EW]: Failed to fetch \S+ +(?P<why>.+?)\.?$", re.MULTILINE
)  # apt's message, one line per file
_DISK_FULL = "No space left on device"
_MIN_FREE_BYTES = (
    128 << 20
)  # bytes; the lists of one suite and apt's caches of them take 105 MB (trixie, amd64)
_UPDATE_SECONDS = 900  # each of apt's connections times out after 30 s
_APT_GET = ("apt-get", "-q", "-y", "--no-install-recommends")


class AptRoot:
    """The private root below `directory`. `locked` serialises its use by several processes."""

    def __init__(self, directory: Path, mirror: DebianMirror, suite: str, arch: str) -> None:
        self.mirror, self.suite, self.arch = mirror, suite, arch
        name = hashlib.sha256(repr((mirror, suite)).encode()).hexdigest()[:12]
        self.directory = directory / f"{suite}-{arch}-{name}"
        self._sources = self.directory / "agentbox.sources"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclusive use of the directory, between processes."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._prepare()
            yield

    def update(self) -> None:
        """Updates the package lists. Raises FetchError (exit 4) if the mirror is unreachable,
        DiskFullError (exit 3).

        Checks the free space first: on a full disk apt's download method exits silently and apt
        waits for it forever.
        """
        if (free := shutil.disk_usage(self.directory).free) < _MIN_FREE_BYTES:
            raise DiskFullError(
                f"cannot read the package lists of {self.suite} for {self.arch}: {free >> 20} "
                f"MiB are free below {self.directory.parent}, {_MIN_FREE_BYTES >> 20} MiB are "
                "required"
            )
        result = self._update_lists()
        if result.code != 0 and self.mirror.security is None:
            # The security archive was guessed from the main part and may not exist.
            self._write_sources(_sources(self.mirror, self.suite, guess=False))
            result = self._update_lists()
        if result.code != 0:
            message = f"cannot read the package lists of {self.suite} for {self.arch}"
            if _DISK_FULL in result.err:
                raise DiskFullError(f"{message}: {result.reason}")
            if cause := self._cause():
                raise NotTrustedError(f"{message}: {cause.why}", cause.hint)
            hint = "Connect to the Debian mirror that this host's apt uses, and try again."
            if _REFUSED.search(result.err):
                raise FetchError(f"{message}: {result.reason}", hint)
            match = _UNREACHED.search(result.err)
            raise NoNetworkError(
                f"{message}: no network: {match['why'] if match else result.reason}", hint
            )

    def _update_lists(self) -> CommandResult:
        return run([*self._command, "update", "--error-on=any"], timeout=_UPDATE_SECONDS)

    def _cause(self) -> Cause | None:
        """What a certificate or a proxy has to do with a failure of apt."""
        for uri in self.mirror.main.uris:
            scheme = uri.partition(":")[0]
            found = apt_transport(scheme)
            if cause := diagnose(uri, bundle=found.get("cert", ""), proxy=found.get("proxy", "")):
                return cause
        return None

    @property
    def is_updated(self) -> bool:
        """True if package lists exist, however old."""
        return any((self.directory / "state/lists").glob("*_Packages*"))

    def apt_get(self, *arguments: str, cwd: Path | None = None) -> CommandResult:
        """Runs apt-get in this root."""
        return run([*self._command, *arguments], cwd=cwd)

    @property
    def _command(self) -> tuple[str, ...]:
        return (*_APT_GET, "-c", str(self.directory / "apt.conf"))

    def show(self, names: Sequence[str]) -> CommandResult:
        """Return the records of packages, each `name` or `name=version`."""
        return run(["apt-cache", "-q", "-c", str(self.directory / "apt.conf"), "show", *names])

    def pin(self, versions: Mapping[str, str]) -> None:
        """Prefers these versions. One that is not served is ignored."""
        rows = [
            f"Package: {name}\nPin: version {version}\nPin-Priority: 1001\n"
            for name, version in versions.items()
        ]
        (self.directory / "preferences").write_text("\n".join(rows))

    def _prepare(self) -> None:
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        (self.directory / "status").touch()
        self.pin({})
        if not self._sources.exists():
            self._write_sources(_sources(self.mirror, self.suite, guess=True))
        (self.directory / "apt.conf").write_text(self._configuration())

    def _write_sources(self, sources: Sequence[Source]) -> None:
        self._sources.write_text("\n".join(_stanza(source) for source in sources))

    def _configuration(self) -> str:
        values = {
            "Dir::State": self.directory / "state",
            "Dir::State::status": self.directory / "status",
            "Dir::State::extended_states": self.directory / "extended_states",
            "Dir::Cache": self.directory / "cache",
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
            "Dir::Etc::sourcelist": self._sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": self.directory / "preferences",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": self.arch,
            "APT::Default-Release": "",
            "APT::Install-Recommends": "false",
            "APT::Install-Suggests": "false",
            "APT::Get::AutomaticRemove": "false",
            # apt drops root privileges for a user that cannot read a private directory.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "1",
        }
        lines = [f"#clear {name};" for name in _CLEARED]
        lines += [f'{key} "{value}";' for key, value in values.items()]
        lines.append(f'APT::Architectures {{ "{self.arch}"; }};')
        return "\n".join(lines) + "\n"


def _sources(mirror: DebianMirror, suite: str, *, guess: bool) -> list[Source]:
    main = replace(mirror.main, suites=(suite, f"{suite}-updates"))
    security = mirror.security or (_guess_security(mirror.main) if guess else None)
    return [main] + ([replace(security, suites=(f"{suite}-security",))] if security else [])


def _guess_security(main: Source) -> Source | None:
    """Return the security archive in the layout of full mirrors: `debian-security` beside
    `debian`.
    """
    uris = tuple(uri.rstrip("/") for uri in main.uris if uri.rstrip("/").endswith("/debian"))
    return replace(main, uris=tuple(f"{uri}-security" for uri in uris)) if uris else None


def _stanza(source: Source) -> str:
    lines = [
        "Types: deb",
        f"URIs: {' '.join(source.uris)}",
        f"Suites: {' '.join(source.suites)}",
        "Components: main",
        "Targets: Packages",
    ]
    if source.signed_by:
        lines.append("Signed-By: " + source.signed_by.replace("\n", "\n "))
    if source.trusted:
        lines.append("Trusted: yes")
    return "\n".join(lines) + "\n"
