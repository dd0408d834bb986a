"""The origins of Debian packages, from the mirror configuration of this host's apt."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from agentbox.host.packages.apt.apt_resolver import package_records
from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.apt.apt_transport import apt_transport
from agentbox.host.packages.apt.control import parse_paragraphs
from agentbox.host.packages.errors import FetchError, NotServedError, ResolveError
from agentbox.host.packages.host_command import run
from agentbox.host.packages.origin import FileOrigin
from agentbox.host.packages.transfer.http_client import HttpClient
from agentbox.plan.lockfile.model import LockEntry
from agentbox.plan.lockfile.names import store_name

_URI = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+)", re.MULTILINE)
_DIRECT_SCHEMES = ("http", "https", "file", "copy")


def origins(
    root: AptRoot, entries: Sequence[LockEntry], *, fresh: bool = False
) -> list[FileOrigin]:
    """Return an origin for each entry, in order. Lists are updated if `fresh` is set or they lack a
    version.

    Raises NotServedError for versions that are no longer served, FetchError without network,
    PrerequisiteError without apt.
    """
    if not entries:
        return []
    with root.locked():
        if fresh or not root.is_updated or _missing_entries(root, entries):
            root.update()
        if missing := _missing_entries(root, entries):
            raise not_served_error(missing, _served_versions(root, missing))
        specs = [f"{entry.name}={entry.version}" for entry in entries]
        result = root.apt_get("download", "--print-uris", *specs, cwd=root.directory)
        if result.code != 0:
            raise FetchError(f"cannot fetch Debian packages: {result.reason}")
        uris = {
            match["file"].rpartition("/")[2]: match["uri"] for match in _URI.finditer(result.out)
        }
    uri_by_file = {store_name(file): uri for file, uri in uris.items()}
    return [_origin(root, entry, uri_by_file.get(entry.file, "")) for entry in entries]


def not_served_error(missing: Sequence[LockEntry], served: Mapping[str, str]) -> NotServedError:
    """Return `cannot fetch git 1:2.47.3-0: the mirror now serves 1:2.47.3-1`, with the number of
    others.
    """
    first, names = missing[0], tuple(sorted({entry.name for entry in missing}))
    mirror_state = (
        f"now serves {served[first.name]}" if first.name in served else "no longer serves it"
    )
    others = f" (and {len(names) - 1} others)" if len(names) > 1 else ""
    return NotServedError(
        f"cannot fetch {first.name} {first.version}: the mirror {mirror_state}{others}",
        f"Run `agentbox lock --upgrade {' '.join(names[:5])}`.",
        names,
    )


def _missing_entries(root: AptRoot, entries: Sequence[LockEntry]) -> list[LockEntry]:
    """Return entries whose version is not in the lists. One with other bytes is rejected by its
    digest later.
    """
    result = root.show([f"{entry.name}={entry.version}" for entry in entries])
    available = {
        (fields.get("Package"), fields.get("Version")) for fields in parse_paragraphs(result.out)
    }
    return [entry for entry in entries if (entry.name, entry.version) not in available]


def _served_versions(root: AptRoot, missing: Sequence[LockEntry]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for entry in missing[:1]:
        try:
            versions |= {
                record.name: record.version for record in package_records(root, [entry.name])
            }
        except ResolveError:
            continue
    return versions


def _origin(root: AptRoot, entry: LockEntry, uri: str) -> FileOrigin:
    if uri and urlsplit(uri).scheme in _DIRECT_SCHEMES and not _has_credentials():
        return FileOrigin(
            entry, url=uri.replace("copy:", "file:", 1), client=_http_client(urlsplit(uri).scheme)
        )
    return FileOrigin(entry, make=lambda target: _download_with_apt(root, entry, target))


def _download_with_apt(root: AptRoot, entry: LockEntry, target: Path) -> None:
    result = root.apt_get("download", f"{entry.name}={entry.version}", cwd=target.parent)
    downloaded = next(target.parent.glob("*.deb"), None)
    if result.code != 0 or downloaded is None:
        raise FetchError(
            f"cannot download {entry.file}: {result.reason}",
            "Connect to the network and try again.",
        )
    downloaded.rename(target)


@cache
def _http_client(scheme: str) -> HttpClient:
    return HttpClient(apt_transport(scheme))


@cache
def _has_credentials() -> bool:
    """True if apt stores passwords for its mirrors (apt_auth.conf(5)); only apt itself may use
    them.
    """
    output = run(
        ["apt-config", "shell", "FILE", "Dir::Etc::netrc/f", "PARTS", "Dir::Etc::netrcparts/d"]
    ).out
    paths = [Path(value) for value in re.findall(r"='(.*)'$", output, re.MULTILINE)]
    return any(path.is_file() or (path.is_dir() and any(path.iterdir())) for path in paths)
